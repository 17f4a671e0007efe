// A gateway whose workers answer in sets.

import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../../cli/open/installation-key.ts'
import { readSystemKey } from '../../../../cli/open/system-clients.ts'
import { openGatewayMetrics } from '../../../../producers/gateway/metrics.ts'
import { openRequestReply, type RequestReply } from '../../../../producers/gateway/request-reply/request-reply.ts'
import { sealResultSet } from '../../../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../../../src/job/catalogue.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import { envelopeDigest } from '../../../../src/job/envelope/digest.ts'
import { type Claims, peek } from '../../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../../src/job/envelope/ids.ts'
import { openRegistry } from '../../../../src/metrics.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { lifecycle } from '../../bundle.ts'

describeStore('a gateway that reads result sets', engine => {
  let installation: Installation
  let gateway: RequestReply
  async function open(timeoutMs: number): Promise<RequestReply> {
    const { queues, vault, credentials, dataDir, session } = installation
    const opened = openRequestReply({
      queues,
      store: vault.store,
      clock: Date.now,
      log: session.log,
      isKeyLive: () => true,
      signingKey: await readSystemKey(dataDir, 'gateway'),
      trusted: { keys: credentials.installationKeys },
      settings: { audience: credentials.audience, timeoutMs, inFlightMax: 100 },
      metrics: openGatewayMetrics(openRegistry({ role: 'test' }), CATALOGUE.kinds),
    })
    await opened.ready
    return opened
  }
  beforeAll(async () => {
    installation = await openInstallation(engine)
    gateway = await open(20_000)
  })
  const closers: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })
  afterAll(async () => {
    await gateway?.close()
    await installation?.close()
  })

  const callerOf = () => {
    const { clientId } = installation.credentials.signingKey
    const { userId, entityId } = installation.credentials
    return { client: { clientId }, userId, entityId, roles: ['TOKEN_LIFECYCLE'] } as never
  }
  function claimsOf(job: { data: unknown }): Claims {
    const peeked = peek((job.data as { jws: string }).jws)
    if (typeof peeked === 'string') throw new Error(peeked)
    return peeked.payload as Claims
  }
  function bodyOf({ client_id, iss, kind, jti }: Claims, envelope: string): string {
    const id = receiptId(client_id ?? iss, jti)
    const now = new Date().toISOString()
    return JSON.stringify({
      v: 1,
      type: 'result',
      result_id: resultId(id, 1),
      receipt_id: id,
      revision: 1,
      status: 'SUCCEEDED',
      code: 204,
      kind,
      jti,
      envelope,
      attempt: 1,
      accepted_at: now,
      completed_at: now,
    })
  }
  /** Answers as soon as `together` jobs have come, in one set. */
  async function startWorker(together: number): Promise<Claims[]> {
    const key = await openInstallationKey(installation.vault.store, installation.vault.halves)
    const seen: Claims[] = []
    const bodies: string[] = []
    const worker = installation.queues.work(
      'token-lifecycle',
      async job => {
        const claims = claimsOf(job)
        seen.push(claims)
        bodies.push(bodyOf(claims, envelopeDigest((job.data as { jws: string }).jws).toString('base64url')))
        if (bodies.length < together) return { done: true }
        const data = sealResultSet(bodies.splice(0), claims.iss, key)
        await installation.queues.add(resultsQueue(claims.iss, claims.reply_to), { id: `s_${randomUUID()}`, data })
        return { done: true }
      },
      { concurrency: 10 },
    )
    closers.push(() => worker.close(1_000))
    await worker.ready
    return seen
  }
  const askAll = (names: readonly string[]) =>
    Promise.all(
      names.map(idempotencyKey => gateway.ask(callerOf(), 'token-lifecycle', lifecycle(), { idempotencyKey })),
    )

  it('gives each caller its answer out of one set', async () => {
    const seen = await startWorker(3)
    const ends = await askAll(['one', 'two', 'three'])
    expect(ends.map(end => end.end === 'answered' && end.result.jti)).toEqual(['one', 'two', 'three'])
    expect(seen.map(({ optional }) => optional)).toEqual(new Array(3).fill({ result_sets: true }))
  })
})
