// What an owner of the database, who has no key, can make a scheduler and a console believe.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openSession, type Session } from '../../../cli/open/open.ts'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { serveConsole } from '../../../cli/process/console.ts'
import { startSchedule } from '../../../cli/process/scheduler.ts'
import { openScheduleMetrics } from '../../../producers/schedule/metrics.ts'
import { systemClock } from '../../../src/clock.ts'
import { sealResult } from '../../../src/job/answer/result.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { askedOf, envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { Claims, readCompact } from '../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../src/job/envelope/ids.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { makeSigningKey } from '../../../src/vault/client-key.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { freePorts } from '../../ops/free-ports.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { silent } from '../bundle.ts'
import { backdate, runsOf } from './bundle.ts'

describeStore('an owner of the database', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const sessionOf = ({ env }: Installation, role: string, more: Record<string, string> = {}): Session => {
    const { stdin, stdout, stderr } = process
    return openSession({ env: { ...env, ...more }, stdin, stdout, stderr }, role)
  }
  /** Replaces the public half in every row; returns what puts the halves back. */
  async function replaceKeys(): Promise<() => Promise<void>> {
    const { store } = installation.vault
    const { rows } = await store.query<{ kid: string; jwk: unknown }>({
      text: 'select kid, public_jwk as jwk from tokenmill.signing_key',
    })
    await store.query({
      text: 'update tokenmill.signing_key set public_jwk = $1',
      values: [JSON.stringify(makeSigningKey().publicJwk)],
    })
    return async () => {
      for (const { kid, jwk } of rows)
        await store.query({
          text: 'update tokenmill.signing_key set public_jwk = $2 where kid = $1',
          values: [kid, JSON.stringify(jwk)],
        })
    }
  }
  const start = (session: Session, { vault, queues }: Installation) =>
    startSchedule(session, {
      store: vault.store,
      queues,
      log: silent,
      clock: systemClock,
      metrics: openScheduleMetrics(openRegistry({ role: 'scheduler' })),
      ungranted: openUngrantedCounter(openRegistry({ role: 'scheduler' })),
    })

  it("can't have a scheduler believe a result that a key of their own signed", async () => {
    const session = sessionOf(installation, 'scheduler')
    try {
      const { vault, queues, credentials, dataDir } = installation
      const forged = makeSigningKey()
      const privateKey = createPrivateKey({ key: forged.privateJwk.reveal() as JsonWebKey, format: 'jwk' })
      const own = { kid: forged.kid, alg: forged.alg, privateKey }
      await vault.store.query({
        text: `insert into tokenmill.signing_key (kid, alg, public_jwk, state, active_at, retired_at)
               values ($1, 'EdDSA', $2, 'RETIRED', now() - interval '1 hour', now())`,
        values: [own.kid, JSON.stringify(forged.publicJwk)],
      })
      const scheduleId = randomUUID()
      await schedules.insert(vault.store, {
        scheduleId,
        clientId: credentials.signingKey.clientId,
        entityId: ENTITY,
        parameters: {},
        reportType: 'TOKEN_ACTIVITY_REPORT',
        mimeType: 'text/csv',
        time: '00:00',
        zone: 'UTC',
      })
      await backdate(installation, scheduleId, 1)
      const { reasons } = await start(session, installation)
      expect(reasons()).toEqual([])
      const { jws } = await until(async () => {
        const [job] = await queues.list('report', ['waiting'], 0, 0)
        return job?.data as { jws: string } | undefined
      })
      const { iss, client_id: clientId = iss, jti, kind, request } = Claims.parse(readCompact(jws)?.payload)
      const receipt = receiptId(clientId, jti)
      const now = new Date().toISOString()
      const body = JSON.stringify({
        v: 1,
        type: 'result',
        result_id: resultId(receipt, 1),
        receipt_id: receipt,
        revision: 1,
        kind,
        jti,
        envelope: envelopeDigest(jws).toString('base64url'),
        answers: askedOf(kind, request).digest()?.toString('base64url'),
        status: 'SUCCEEDED',
        code: 200,
        record: { reportUid: randomUUID() },
        attempt: 1,
        accepted_at: now,
        completed_at: now,
      })
      const data = sealResult(body, { clientId: iss, resultId: resultId(receipt, 1), revision: 1 }, own)
      const { clientId: reader } = await readSystemKey(dataDir, 'scheduler')
      await queues.add(resultsQueue(reader), { id: 'r_forged', data })
      // It is put off until its key is known, which is never.
      await until(async () => (await queues.depth(resultsQueue(reader))).delayed > 0, { what: 'the deferred result' })
      expect(await runsOf(installation, scheduleId)).toMatchObject([{ state: 'QUEUED', reportUid: null }])
      await installation.openWorkers({ roles: ['bulk'] })
      await until(async () => (await runsOf(installation, scheduleId))[0]?.endedAt, { what: 'the end of the run' })
      expect(await runsOf(installation, scheduleId)).toMatchObject([{ state: 'SUCCEEDED' }])

      const restore = await replaceKeys()
      await until(() => reasons().length > 0, { what: 'the reason', ms: 30_000 })
      expect(reasons()).toEqual([expect.stringContaining('no signing key in the database is believed here')])
      await restore()
    } finally {
      await session.lifetime.close()
    }
  })

  it("can't have a console believe a key of their own", async () => {
    const [port = 0] = await freePorts(1)
    const session = sessionOf(installation, 'console', {
      TOKENMILL_CONSOLE_PORT: String(port),
      TOKENMILL_CONSOLE_ORIGIN: `http://localhost:${port}`,
    })
    try {
      const { opsPort } = await serveConsole(session)
      const readyz = async () => (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).text()
      expect(await readyz()).toBe('ready\n')
      const restore = await replaceKeys()
      await until(async () => (await readyz()).includes('no signing key in the database is believed here'), {
        what: 'the reason',
        ms: 30_000,
      })
      await restore()
    } finally {
      await session.lifetime.close()
    }
  })

  it('starts no scheduler and no console on a host without the file of the pinned keys', async () => {
    const [port = 0] = await freePorts(1)
    const [scheduler, pages] = [
      sessionOf(installation, 'scheduler'),
      sessionOf(installation, 'console', { TOKENMILL_CONSOLE_PORT: String(port) }),
    ]
    try {
      await rm(join(installation.dataDir, 'system', 'installation-keys.json'))
      const missing = /installation-keys\.json does not exist; run `tokenmill schema upgrade`/
      await expect(start(scheduler, installation)).rejects.toThrow(missing)
      await expect(serveConsole(pages)).rejects.toThrow(missing)
    } finally {
      await scheduler.lifetime.close()
      await pages.lifetime.close()
    }
  })
})
