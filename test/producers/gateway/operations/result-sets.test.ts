// A gateway whose workers answer in sets, and one of whose workers is of a release that knows no sets.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../../cli/open/installation-key.ts'
import { readSystemKey } from '../../../../cli/open/system-clients.ts'
import { openGatewayMetrics } from '../../../../producers/gateway/metrics.ts'
import { openRequestReply, type RequestReply } from '../../../../producers/gateway/operations/request-reply.ts'
import { sealResultSet } from '../../../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../../../src/job/catalogue.ts'
import { type Claims, peek } from '../../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../../src/job/envelope/ids.ts'
import { openRegistry } from '../../../../src/metrics.ts'
import type { Worker } from '../../../../src/queue/engine.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { lifecycle } from '../../bundle.ts'

describeStore('a gateway that reads result sets', engine => {
  let installation: Installation
  let gateway: RequestReply
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const { queues, vault, credentials, dataDir, session } = installation
    gateway = openRequestReply({
      ...{ queues, store: vault.store, clock: Date.now, log: session.log },
      signingKey: await readSystemKey(dataDir, 'gateway'),
      trusted: { keys: credentials.installationKeys },
      settings: { audience: credentials.audience, timeoutMs: 20_000, inFlightMax: 100 },
      metrics: openGatewayMetrics(openRegistry({ role: 'test' })),
      features: { has: feature => feature === 'result_sets' },
    })
    await gateway.ready
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
  /** Answers as soon as `together` jobs have come, in one set. An older worker refuses the claim. */
  async function startWorker(together: number, isOlder: boolean): Promise<{ seen: Claims[]; worker: Worker }> {
    const key = await openInstallationKey(installation.vault.store, installation.vault.halves)
    const seen: Claims[] = []
    let bodies: string[] = []
    const worker = installation.queues.work(
      'token-lifecycle',
      async job => {
        const peeked = peek((job.data as { jws: string }).jws)
        if (typeof peeked === 'string') throw new Error(peeked)
        const claims = peeked.payload as Claims
        seen.push(claims)
        const id = receiptId(claims.client_id ?? claims.iss, claims.jti)
        const now = new Date().toISOString()
        const isRefused = isOlder && claims.result_sets !== undefined
        const details = { 'body.result_sets': { message: 'Unknown.', code: 'field_unknown' } }
        const error = { code: 400, message: 'Refused.', details, timestamp: 1, reversal_status: 'NONE' }
        const revision = isRefused ? 1 : 2
        const end = isRefused ? { status: 'FAILED', code: 400, error } : { status: 'SUCCEEDED', code: 204 }
        bodies.push(
          JSON.stringify({
            ...{ v: 1, type: 'result', result_id: resultId(id, revision), receipt_id: id, revision, ...end },
            ...{ kind: claims.kind, jti: claims.jti, attempt: 1, accepted_at: now, completed_at: now },
          }),
        )
        if (bodies.length === together) {
          const data = sealResultSet(bodies, claims.iss, key)
          bodies = []
          await installation.queues.add(resultsQueue(claims.iss, claims.reply_to), { id: `s_${randomUUID()}`, data })
        }
        return { done: true }
      },
      { concurrency: 10 },
    )
    await worker.ready
    return { seen, worker }
  }
  const askAll = (names: readonly string[]) =>
    Promise.all(
      names.map(idempotencyKey => gateway.ask(callerOf(), 'token-lifecycle', lifecycle(), { idempotencyKey })),
    )

  it('gives each caller its answer out of one set', async () => {
    const { seen, worker } = await startWorker(3, false)
    const ends = await askAll(['one', 'two', 'three'])
    expect(ends.map(end => end.end === 'answered' && end.result.jti)).toEqual(['one', 'two', 'three'])
    expect(seen.map(({ result_sets }) => result_sets)).toEqual([true, true, true])
    await worker.close(1_000)
  })

  it('sends a job again without the claim if an older worker refuses it, and tells its caller nothing of that', async () => {
    const { seen, worker } = await startWorker(1, true)
    const [end] = await askAll(['older'])
    expect(end).toMatchObject({ end: 'answered', result: { status: 'SUCCEEDED', jti: 'older' } })
    expect(seen.map(({ result_sets }) => result_sets)).toEqual([true, undefined])
    await worker.close(1_000)
  })
})
