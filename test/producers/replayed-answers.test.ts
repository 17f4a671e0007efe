// Whose answer a result is, for each sender and each result that somebody puts back on its results queue: the installation has
// signed all of them once. The replay lies there before the job is on its queue, so it is read before the true answer.
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import { readSystemKey } from '../../cli/open/system-clients.ts'
import { type Client, connect, type Handle } from '../../producers/client.ts'
import { signAsk } from '../../producers/envelope.ts'
import type { FileRunDeps } from '../../producers/file-run.ts'
import { openGatewayMetrics } from '../../producers/gateway/metrics.ts'
import { openRequestReply } from '../../producers/gateway/request-reply/request-reply.ts'
import { ingest } from '../../producers/ingest/run.ts'
import { migrate } from '../../producers/migrate/run.ts'
import { submitFile } from '../../producers/submit/submit.ts'
import { isRefusal } from '../../src/errors.ts'
import { type InstallationKey, type Result, type ResultData, sealResult } from '../../src/job/answer/result.ts'
import { sealResultSet } from '../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { askedOf, envelopeDigest } from '../../src/job/envelope/digest.ts'
import { Claims, readCompact } from '../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../src/job/envelope/ids.ts'
import { openRegistry } from '../../src/metrics.ts'
import type { QueuedJob, Queues } from '../../src/queue/engine.ts'
import * as schedules from '../../src/store/report/schedules.ts'
import { describeOnRedis } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { silent } from './bundle.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from './ingest/sample.ts'
import { backdate, openScheduleFor, runsOf } from './schedule/bundle.ts'

const EARLIER = envelopeDigest('an earlier envelope').toString('base64url')
const ELSE = askedOf('token-lifecycle', { id: 't', action: 'DELETE' }).digest()?.toString('base64url') ?? ''

/** A delivery that was signed before. `own`: the result that would answer the job, but for the envelope. */
type Replay = (own: Result, sign: Signs) => ResultData
interface Signs {
  single(result: Result, aud?: string): ResultData
  set(results: readonly Result[]): ResultData
}

const failure = {
  status: 'FAILED',
  code: 400,
  record: undefined,
  error: { code: 400, message: 'Refused.', timestamp: 1, reversal_status: 'NONE' },
} as unknown as Partial<Result>

const REPLAYS: Record<string, Replay> = {
  'the refusal of another job beside a receipt': (own, { single }) =>
    single({ ...own, ...failure, revision: 0, answers: ELSE }),
  'the refusal of another job': (own, { single }) => single({ ...own, ...failure, answers: ELSE }),
  'the refusal of a request that was not understood': (own, { single }) =>
    single({ ...own, ...failure, answers: undefined } as never),
  'the refusal of the same request in an earlier envelope': (own, { single }) => single({ ...own, ...failure }),
  'the answer to a job of another kind': (own, { single }) => single({ ...own, kind: 'report', answers: ELSE }),
  'the answer to another request, such as a chunk of other records': (own, { single }) =>
    single({ ...own, answers: ELSE }),
  'a later revision of another job': (own, { single }) => single({ ...own, ...failure, revision: 9, answers: ELSE }),
  'what another client was told': (own, { single }) => single({ ...own, ...failure }, 'cother0000000000000000000a'),
  'a member of a set': (own, { set }) =>
    set([
      { ...own, ...failure, answers: ELSE },
      { ...own, ...failure, answers: ELSE, result_id: randomUUID(), receipt_id: randomUUID() },
    ]),
}

describeOnRedis('a result that was put back on the results queue', engine => {
  let installation: Installation
  let key: InstallationKey
  let client: Client
  let made = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    key = await openInstallationKey(installation.vault.store, installation.vault.halves)
    await installation.openWorkers()
    client = await installation.connect({ replyTo: 'encrypting' })
  })
  afterAll(() => installation?.close())

  /** Queues that put the replay on the results queue before the first job; `jobs`: those that were put. */
  function replaying(replay: Replay): { queues: Queues; replayed: () => number } {
    const { queues } = installation
    const seen = new Set<string>()
    const before = async (queue: string, job: QueuedJob) => {
      const { jws = '' } = job.data as { jws?: string }
      const claims = Claims.safeParse(readCompact(jws)?.payload).data
      if (claims === undefined || seen.has(job.id)) return
      seen.add(job.id)
      const data = deliveryOf(claims, replay)
      await installation.queues.add(resultsQueue(claims.iss, claims.reply_to), { id: `r_${randomUUID()}`, data })
      // Its reader takes deliveries in their order.
      expect(queue).toBe(claims.kind)
    }
    return {
      replayed: () => seen.size,
      queues: {
        ...queues,
        async add(queue, job) {
          await before(queue, job)
          return queues.add(queue, job)
        },
        async addBulk(queue, jobs) {
          for (const job of jobs) await before(queue, job)
          return queues.addBulk(queue, jobs)
        },
      },
    }
  }

  function deliveryOf({ iss, client_id, jti, kind, request }: Claims, replay: Replay): ResultData {
    const receipt = receiptId(client_id ?? iss, jti)
    const now = new Date().toISOString()
    const own: Result = {
      v: 1,
      type: 'result',
      result_id: resultId(receipt, 1),
      receipt_id: receipt,
      revision: 1,
      kind,
      jti,
      envelope: EARLIER,
      answers: askedOf(kind, request).digest()?.toString('base64url') ?? '',
      status: 'SUCCEEDED',
      code: 200,
      record: { replayed: true },
      attempt: 1,
      accepted_at: now,
      completed_at: now,
    }
    return replay(own, {
      single: (result, aud = iss) =>
        sealResult(
          JSON.stringify(result),
          { clientId: aud, resultId: result.result_id, revision: result.revision },
          key,
        ),
      set: results =>
        sealResultSet(
          results.map(result => JSON.stringify(result)),
          iss,
          key,
        ),
    })
  }

  async function createRequest(): Promise<Record<string, unknown>> {
    made += 1
    const card = { cardNumber: panOf(made, 91), expiryMonth: 12, expiryYear: 2031 }
    return { token_scope: installation.scope, ...(await client.encryptCard(card)) }
  }
  const isTrue = (result: Pick<Result, 'status' | 'record'>) => {
    expect(result).toMatchObject({ status: 'SUCCEEDED', record: { reuse_token: expect.any(String) } })
  }
  const nameOf = () => `a${randomUUID().replaceAll('-', '').slice(0, 20)}`
  const runDeps = (queues: Queues): FileRunDeps => ({
    queues,
    credentials: installation.credentials,
    clock: Date.now,
    log: silent,
    stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
    stop: new AbortController().signal,
  })

  const SENDERS: Record<string, (queues: Queues) => Promise<void>> = {
    async call(queues) {
      const { credentials } = installation
      const own = await connect({ queues, credentials, replyTo: nameOf(), log: silent })
      isTrue(await own.call('token-create', await createRequest()))
      await own.close()
    },
    async bulk(queues) {
      const { credentials } = installation
      const own = await connect({ queues, credentials, replyTo: nameOf(), log: silent })
      const items = [{ kind: 'token-create' as const, request: await createRequest() }]
      for await (const { result } of own.bulk(items)) isTrue(result)
      await own.close()
    },
    async 'a handle in a later process'(queues) {
      const { credentials } = installation
      const options = { credentials, replyTo: nameOf(), log: silent }
      const first = await connect({ ...options, queues: deaf(queues) })
      const handle = await first.submit('token-create', await createRequest())
      await first.close()
      const later = await connect({ ...options, queues: installation.queues })
      isTrue(await later.result(JSON.parse(JSON.stringify(handle)) as Handle))
      await later.close()
    },
    async submit(queues) {
      const { credentials, dataDir } = installation
      const file = join(dataDir, `${nameOf()}.ndjson`)
      await writeFile(file, `${JSON.stringify({ kind: 'token-create', request: await createRequest() })}\n`)
      const [out, progress] = [new PassThrough().resume(), new PassThrough().resume()]
      const totals = await submitFile({ file, queues, credentials, out, progress, log: silent })
      expect(totals).toMatchObject({ succeeded: 1, failed: 0, complete: true })
    },
    async migrate(queues) {
      made += 1
      const file = join(installation.dataDir, `${nameOf()}.csv`)
      await writeFile(file, `card_number,expiry_month,expiry_year\n${panOf(made, 91)},12,2031\n`)
      const options = {
        file,
        scope: installation.scope,
        ignoreUnknown: false,
        echo: [],
        dryRun: false,
        onConflict: 'update' as const,
        onExpired: 'import' as const,
        chunk: 50,
        inFlight: 1,
        recordKind: 'token-create' as const,
        again: false,
      }
      expect((await migrate(options, runDeps(queues))).counts).toMatchObject({ CREATED: 1, FAILED: 0 })
    },
    async ingest(queues) {
      made += 1
      const batchId = nameOf()
      const file = join(installation.dataDir, `${batchId}.csv`)
      await writeFile(file, `${CSV_HEADER}\n${csvRowOf(transactionOf(made, { entity: ENTITY, seed: batchId }))}\n`)
      const { counts } = await ingest({ file, chunk: 10, inFlight: 1, batchId }, runDeps(queues))
      expect(counts).toMatchObject({ CREATED: 1, FAILED: 0 })
    },
    async 'the gateway'(queues) {
      const { vault, credentials, dataDir } = installation
      const gateway = openRequestReply({
        queues,
        store: vault.store,
        clock: Date.now,
        log: silent,
        isKeyLive: () => true,
        signingKey: await readSystemKey(dataDir, 'gateway'),
        trusted: { keys: credentials.installationKeys },
        settings: { audience: credentials.audience, timeoutMs: 200_000, inFlightMax: 100 },
        metrics: openGatewayMetrics(openRegistry({ role: 'test' }), CATALOGUE.kinds),
      })
      await gateway.ready
      const { clientId } = credentials.signingKey
      const { userId, entityId } = credentials
      const caller = { client: { clientId }, userId, entityId, roles: ['TOKEN_WRITE'] } as never
      const end = await gateway.ask(caller, 'token-create', await createRequest())
      expect(end.end).toBe('answered')
      if (end.end === 'answered') isTrue(end.result)
      await gateway.close()
    },
    async 'the scheduler'(queues) {
      const { store } = installation.vault
      const scheduleId = randomUUID()
      await schedules.insert(store, {
        scheduleId,
        clientId: installation.credentials.signingKey.clientId,
        reportType: 'TOKEN_ACTIVITY_REPORT',
        entityId: ENTITY,
        mimeType: 'text/csv',
        parameters: {},
        time: '00:00',
        zone: 'UTC',
      })
      await backdate(installation, scheduleId, 1)
      const schedule = await openScheduleFor({ ...installation, queues })
      const [run] = await until(async () => {
        const found = await runsOf(installation, scheduleId)
        return found[0]?.endedAt && found
      })
      expect(run).toMatchObject({ state: 'SUCCEEDED', reportUid: expect.any(String), faults: 0 })
      await until(async () => (await schedule.counted('succeeded')) === 1)
      expect(await schedule.counted('failed')).toBe(0)
      await schedule.close()
      await schedules.remove(store, scheduleId)
    },
  }

  it.each(Object.entries(SENDERS))('is no answer for %s, whatever it is', async (_, send) => {
    for (const [name, replay] of Object.entries(REPLAYS)) {
      const { queues, replayed } = replaying(replay)
      await send(queues).catch(error => {
        throw new Error(`${name}: ${error}`, { cause: error })
      })
      expect(replayed(), name).toBe(1)
    }
  })

  it('is none though a worker has signed it: a refusal that left its jti free, for a later job of that jti', async () => {
    const { queues, credentials } = installation
    const { clientId } = credentials.signingKey
    const [jti, replyTo] = [nameOf(), nameOf()]
    const queue = resultsQueue(clientId, replyTo)
    const ask = { kind: 'token-lifecycle', request: { id: 't00000000000000000000000000', action: 'SUSPEND' } }
    const signed = await signAsk({ ...credentials, roles: ['TOKEN_READ'] }, ask, { jti, replyTo }, Date.now())
    if (isRefusal(signed)) throw new Error(signed.reason)
    await queues.add(ask.kind, { id: signed.id, data: signed.data })
    const lying = async () => queues.list(queue, ['waiting'], 0, 9)
    const [refused] = await until(async () => {
      const found = await lying()
      return found.length > 0 && found
    })
    const kept = refused?.data as ResultData
    expect(JSON.parse(kept.body)).toMatchObject({ status: 'FAILED', code: 403, jti, answers: signed.answers })
    await queues.obliterate(queue)
    const options = { credentials, replyTo, log: silent }
    const first = await connect({ ...options, queues: deaf(queues) })
    await queues.add(queue, { id: `r_${randomUUID()}`, data: kept })
    const handle = await first.submit('token-create', await createRequest(), { jti })
    await first.close()
    const later = await connect({ ...options, queues })
    isTrue(await later.result(handle))
    await later.close()
  })
})

/** Queues of a process that reads no result. */
function deaf(queues: Queues): Queues {
  return { ...queues, work: () => ({ ready: Promise.resolve(), close: async () => {} }) as never }
}
