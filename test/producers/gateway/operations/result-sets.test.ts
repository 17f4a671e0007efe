// A gateway whose workers answer in sets, and one of whose workers is of a release that knows no sets.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../../cli/open/installation-key.ts'
import { readSystemKey } from '../../../../cli/open/system-clients.ts'
import { openGatewayMetrics } from '../../../../producers/gateway/metrics.ts'
import { openRequestReply, type RequestReply } from '../../../../producers/gateway/operations/request-reply.ts'
import { sealResultSet } from '../../../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../../../src/job/catalogue.ts'
import { envelopeDigest } from '../../../../src/job/envelope/digest.ts'
import { type Claims, peek } from '../../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../../src/job/envelope/ids.ts'
import { openRegistry } from '../../../../src/metrics.ts'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { lifecycle } from '../../bundle.ts'

describeStore('a gateway that reads result sets', engine => {
  let installation: Installation
  let gateway: RequestReply
  async function open(timeoutMs: number): Promise<RequestReply> {
    const { queues, vault, credentials, dataDir, session } = installation
    const opened = openRequestReply({
      ...{ queues, store: vault.store, clock: Date.now, log: session.log },
      signingKey: await readSystemKey(dataDir, 'gateway'),
      trusted: { keys: credentials.installationKeys },
      settings: { audience: credentials.audience, timeoutMs, inFlightMax: 100 },
      metrics: openGatewayMetrics(openRegistry({ role: 'test' })),
      features: { has: feature => feature === 'result_sets' },
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
  const envelopeOf = (job: { data: unknown }) => envelopeDigest((job.data as { jws: string }).jws).toString('base64url')
  function bodyOf(
    { client_id, iss, kind, jti }: Claims,
    envelope: string,
    { revision, isRefused }: { revision: number; isRefused: boolean },
  ): string {
    const id = receiptId(client_id ?? iss, jti)
    const now = new Date().toISOString()
    const details = { 'body.result_sets': { message: 'Unknown.', code: 'field_unknown' } }
    const error = { code: 400, message: 'Refused.', details, timestamp: 1, reversal_status: 'NONE' }
    const end = isRefused ? { status: 'FAILED', code: 400, error } : { status: 'SUCCEEDED', code: 204 }
    return JSON.stringify({
      ...{ v: 1, type: 'result', result_id: resultId(id, revision), receipt_id: id, revision, ...end },
      ...{ kind, jti, envelope, attempt: 1, accepted_at: now, completed_at: now },
    })
  }
  /**
   * Answers as soon as `together` jobs have come, in one set. An older worker refuses the envelope with the claim; it says so
   * `refusals` times, the first time when the claim comes, then before the answer to the job.
   */
  async function startWorker(together: number, refusals: number): Promise<Claims[]> {
    const key = await openInstallationKey(installation.vault.store, installation.vault.halves)
    const seen: Claims[] = []
    const bodies: string[] = []
    let refused = ''
    async function put(claims: Claims, sent: readonly string[]): Promise<void> {
      const data = sealResultSet(sent, claims.iss, key)
      await installation.queues.add(resultsQueue(claims.iss, claims.reply_to), { id: `s_${randomUUID()}`, data })
    }
    const worker = installation.queues.work(
      'token-lifecycle',
      async job => {
        const claims = claimsOf(job)
        seen.push(claims)
        if (refusals > 0 && claims.result_sets !== undefined) {
          refused = envelopeOf(job)
          await put(claims, [bodyOf(claims, refused, { revision: 1, isRefused: true })])
          return { done: true }
        }
        for (let revision = 2; revision <= refusals; revision += 1)
          await put(claims, [bodyOf(claims, refused, { revision, isRefused: true })])
        bodies.push(bodyOf(claims, envelopeOf(job), { revision: refusals + 1, isRefused: false }))
        if (bodies.length === together) await put(claims, bodies.splice(0))
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
    const seen = await startWorker(3, 0)
    const ends = await askAll(['one', 'two', 'three'])
    expect(ends.map(end => end.end === 'answered' && end.result.jti)).toEqual(['one', 'two', 'three'])
    expect(seen.map(({ result_sets }) => result_sets)).toEqual([true, true, true])
  })

  it('sends a job again without the claim if an older worker refuses it, and tells its caller nothing of that', async () => {
    const seen = await startWorker(1, 1)
    const [end] = await askAll(['older'])
    expect(end).toMatchObject({ end: 'answered', result: { status: 'SUCCEEDED', jti: 'older' } })
    expect(seen.map(({ result_sets }) => result_sets)).toEqual([true, undefined])
  })

  it('ignores a refusal of the claim that comes twice', async () => {
    const seen = await startWorker(1, 2)
    const [end] = await askAll(['twice'])
    expect(end).toMatchObject({ end: 'answered', result: { status: 'SUCCEEDED', jti: 'twice', revision: 3 } })
    expect(seen.map(({ result_sets }) => result_sets)).toEqual([true, undefined])
  })

  it('sends a reversal without the claim, because a worker of an older release may get it days later', async () => {
    const hasty = await open(300)
    closers.push(hasty.close, () => installation.queues.obliterate('token-lifecycle'))
    const end = await hasty.ask(callerOf(), 'token-lifecycle', lifecycle(), { idempotencyKey: 'late' })
    expect(end).toEqual({ end: 'late', reversalStatus: 'REQUIRED' })
    const reversals: Claims[] = []
    const worker = installation.queues.work(
      'reversal',
      async job => {
        reversals.push(claimsOf(job))
        return { done: true }
      },
      { concurrency: 1 },
    )
    closers.push(() => worker.close(1_000))
    await until(() => reversals.length === 1, { what: 'the reversal' })
    expect(reversals[0]).toHaveProperty('reply_to')
    expect(reversals[0]).not.toHaveProperty('result_sets')
  })
})
