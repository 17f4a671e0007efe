// What a reader makes of a delivery with several results: each is handled once, and the delivery is acknowledged when all
// are. And when a sender says that its readers read such deliveries.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Client, type ConnectOptions, connect, type Delivery } from '../../producers/client.ts'
import { NOTHING_ACKNOWLEDGED, openInbox } from '../../producers/results.ts'
import { sealResultSet } from '../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { FEATURES } from '../../src/job/envelope/features.ts'
import { receiptId, resultId } from '../../src/job/envelope/ids.ts'
import { sealLiveKeys } from '../../src/job/envelope/live-keys.ts'
import { type Result, sealResult } from '../../src/job/result.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { startScript } from '../support/process.ts'
import { until } from '../support/until.ts'
import { type FakeWorker, fakeWorker, lifecycle, makeParties, type Parties, type Script, silent } from './bundle.ts'

const DAY_MS = 86_400_000

/** How a worker of an older release answers an envelope with the claim. */
const REFUSED: Partial<Result> = {
  ...{ status: 'FAILED', code: 400, revision: 1 },
  error: {
    ...{ code: 400, message: 'x', timestamp: 1, reversal_status: 'NONE' },
    details: { 'body.result_sets': { message: 'unknown', code: 'field_unknown' } },
  },
}

describeRedis('a reader of result sets', () => {
  let queues: Queues
  let prefix: string
  let parties: Parties
  const closers: (() => Promise<void>)[] = []
  beforeAll(async () => {
    parties = await makeParties()
  })
  beforeEach(async () => {
    prefix = `{sets-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
  })
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    for (const name of [queue(), 'token-lifecycle', 'token-create']) await queues.obliterate(name)
    await queues.close()
  })

  const clientId = () => parties.credentials.signingKey.clientId
  const queue = () => resultsQueue(clientId(), 'own')
  const depth = async () => {
    const { waiting, active, delayed } = await queues.depth(queue())
    return waiting + active + delayed
  }
  async function open(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const { credentials } = parties
    const client = await connect({ queues, credentials, log: silent, replyTo: 'own', resendMs: 60_000, ...options })
    closers.push(client.close)
    return client
  }
  function textOf(jti: string, revision = 1): string {
    const receipt = receiptId(clientId(), jti)
    const now = new Date().toISOString()
    return JSON.stringify({
      ...{ v: 1, type: 'result', result_id: resultId(receipt, revision), receipt_id: receipt, revision, jti },
      ...{ kind: 'token-lifecycle', status: 'SUCCEEDED', code: 204, attempt: 1, accepted_at: now, completed_at: now },
    })
  }
  let count = 0
  /** Puts a set of results on the queue, as a worker does. */
  async function putSet(jtis: readonly string[], key = parties.installation): Promise<void> {
    count += 1
    const data = sealResultSet(
      jtis.map(jti => textOf(jti)),
      clientId(),
      key,
    )
    await queues.add(queue(), { id: `s_${count}`, data, redeliver: true })
  }
  async function putSingle(jti: string): Promise<void> {
    count += 1
    const about = { clientId: clientId(), resultId: resultId(receiptId(clientId(), jti), 1), revision: 1 }
    const data = sealResult(textOf(jti), about, parties.installation)
    await queues.add(queue(), { id: `r_${count}`, data, redeliver: true })
  }
  const names = (total: number) => Array.from({ length: total }, (_, index) => `job-${index}`)

  it('gives each result to its waiting call and once to the callback, and acknowledges the set as one', async () => {
    const client = await open()
    const told: string[] = []
    client.results(delivery => {
      if (delivery.type === 'result') told.push(delivery.jti)
    })
    const jtis = names(40)
    const calls = jtis.map(jti => client.result({ jti, receiptId: receiptId(clientId(), jti) }))
    await putSet(jtis)
    expect((await Promise.all(calls)).map(({ jti }) => jti)).toEqual(jtis)
    await until(() => client.counts().taken === 40)
    expect(told).toEqual(jtis)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 40 })
    await until(async () => (await depth()) === 0)
  })

  it('hears a result once, though it comes in two sets and alone', async () => {
    const client = await open()
    const told: string[] = []
    client.results(delivery => {
      if (delivery.type === 'result') told.push(delivery.jti)
    })
    await Promise.all([putSet(names(5)), putSet(names(6)), putSingle('job-3'), putSet(['job-5', 'job-5'])])
    await until(() => client.counts().taken === 14)
    expect(told.sort()).toEqual(names(6))
  })

  it('is offered the whole set again until each callback has resolved, and calls back only for what is left', async () => {
    const client = await open({ resendMs: 600 })
    const told: string[] = []
    let failures = 2
    client.results(delivery => {
      if (delivery.type !== 'result') return
      if (delivery.jti === 'job-2' && failures > 0) {
        failures -= 1
        throw new Error('not now')
      }
      told.push(delivery.jti)
    })
    await putSet(names(4))
    await until(() => client.counts().taken === 4)
    expect(told.sort()).toEqual(names(4))
    expect(failures).toBe(0)
    await until(async () => (await depth()) === 0)
  })

  it('handles no more results at once than it was told', async () => {
    let running = 0
    let most = 0
    const inbox = openInbox(
      queues,
      { clientId: clientId(), replyTo: 'own', keys: parties.credentials.installationKeys },
      async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise(resolve => setTimeout(resolve, 1))
        running -= 1
        return 'taken'
      },
      { concurrency: 7, log: silent },
    )
    closers.push(() => inbox.close(1_000))
    await Promise.all([putSet(names(30)), putSet(names(30)), putSet(names(30))])
    await until(() => inbox.counts.taken === 90)
    expect(most).toBeLessThanOrEqual(7)
    expect(most).toBeGreaterThan(1)
  })

  it('drops a set that nobody here signed, and counts it once', async () => {
    const client = await open()
    const got: Delivery[] = []
    client.results(delivery => {
      got.push(delivery)
    })
    await putSet(names(9), (await makeParties()).installation)
    await putSet(['mine'])
    await until(() => client.counts().forged === 1 && client.counts().taken === 1)
    expect(got).toHaveLength(1)
  })

  it('takes over a set that another process had in hand when it was killed', async () => {
    const { clientId: id } = parties.credentials.signingKey
    const jwk = JSON.stringify(parties.installationJwk)
    const url = redisUrl() ?? ''
    const victim = startScript('test/producers/reader-victim.ts', [url, prefix, id, jwk, '4', '1000'])
    await putSet(names(4))
    await until(() => victim.stdout().split('took').length >= 5, { what: 'all but one result to be handled' })
    expect((await queues.depth(queue())).active).toBe(1)
    await victim.kill9()
    const own = await openRedis([url], { prefix, lockMs: 1_000, log: silent })
    closers.push(() => own.close())
    const client = await open({ queues: own })
    const told: string[] = []
    client.results(delivery => {
      if (delivery.type === 'result') told.push(delivery.jti)
    })
    await until(() => client.counts().taken === 4, { what: 'the whole set' })
    expect(told).toEqual(names(4))
    await until(async () => (await depth()) === 0)
  })

  function worker(script?: Script): FakeWorker {
    const opened = fakeWorker(queues, parties, ['token-lifecycle', 'token-create'], script)
    closers.push(opened.close)
    return opened
  }
  let seq = 0
  let announced: readonly string[] | undefined
  beforeEach(() => {
    announced = undefined
  })
  async function announce(features: readonly string[]): Promise<void> {
    seq += 1
    announced = features
    const list = { aud: 'tokenmill', iat: Date.now() / 1000, seq, features: [...features] }
    await queues.setNotice('live-keys', sealLiveKeys(list, parties.installation), 20_000)
  }
  /** Sends jobs until one says `result_sets`. What was announced is said anew, for it lives only so long. */
  async function untilSaid(client: Client, { seen }: FakeWorker): Promise<void> {
    await until(async () => {
      if (announced) await announce(announced)
      await client.call('token-lifecycle', lifecycle())
      return seen.at(-1)?.claims.result_sets === true
    })
  }

  it('is announced by a sender with a results queue of its own, once all workers know the claim', async () => {
    const fake = worker()
    const client = await open()
    await client.call('token-lifecycle', lifecycle())
    expect(fake.seen.at(-1)?.claims).not.toHaveProperty('result_sets')
    // Of two clients that read one queue, each leaves the other's results for seconds.
    await client.close()
    await announce(FEATURES)
    const other = await open()
    await untilSaid(other, fake)
    await other.close()
    const common = await open({ replyTo: undefined })
    await common.call('token-lifecycle', lifecycle())
    expect(fake.seen.at(-1)?.claims).not.toHaveProperty('result_sets')
    const told = await open({ resultSets: false })
    await told.call('token-lifecycle', lifecycle())
    expect(fake.seen.at(-1)?.claims).not.toHaveProperty('result_sets')
  })

  it('says result_columns only for jobs that ask for columns, with a results queue of its own, once all workers know it', async () => {
    const fake = worker()
    const without = FEATURES.filter(feature => feature !== 'result_columns')
    await announce(without)
    const client = await open()
    await untilSaid(client, fake)
    const call = async (by: Client, resultColumns?: boolean) => {
      await by.call('token-lifecycle', lifecycle(), { resultColumns })
      return fake.seen.at(-1)?.claims.result_columns
    }
    expect(await call(client, true)).toBeUndefined()
    await client.close()
    await announce(FEATURES)
    const other = await open()
    await untilSaid(other, fake)
    expect(await call(other, true)).toBe(true)
    expect(await call(other)).toBeUndefined()
    expect(await call(other, false)).toBeUndefined()
    await other.close()
    const common = await open({ replyTo: undefined, resultSets: true })
    await untilSaid(common, fake)
    expect(await call(common, true)).toBeUndefined()
  })

  it('takes the features for forms of results from a caller that knows them, and those for other claims from the list', async () => {
    const fake = worker()
    const client = await open({ features: async () => FEATURES })
    await untilSaid(client, fake)
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    await client.call('token-lifecycle', lifecycle(), { resultColumns: true, traceparent })
    expect(fake.seen.at(-1)?.claims).toMatchObject({ result_sets: true, result_columns: true })
    expect(fake.seen.at(-1)?.claims).not.toHaveProperty('traceparent')
  })

  it('does not read the list for a job whose claims are only about forms of results, if a caller knows the features', async () => {
    let reads = 0
    const watched: Queues = {
      ...queues,
      notice(name) {
        reads += 1
        return queues.notice(name)
      },
    }
    worker()
    const client = await open({ queues: watched, features: async () => FEATURES })
    await client.call('token-lifecycle', lifecycle())
    await client.call('token-lifecycle', lifecycle())
    // The one read is of the keys that are live, not of the features.
    expect(reads).toBe(1)
  })

  it('sends a job again without both claims if a worker of an older release refuses result_columns', async () => {
    await announce(FEATURES)
    const fake = worker(async ({ claims }, tell) => {
      const details = { 'body.result_columns': { message: 'unknown', code: 'field_unknown' as const } }
      const error = { code: 400 as const, message: 'x', timestamp: 1, reversal_status: 'NONE' as const, details }
      await tell(claims.result_columns ? { ...REFUSED, error } : { revision: 2 })
      return undefined
    })
    const client = await open({ resendMs: 2_000 })
    await untilSaid(client, fake)
    const before = fake.seen.length
    const result = await client.call('token-lifecycle', lifecycle(), { jti: 'columns', resultColumns: true })
    expect(result).toMatchObject({ status: 'SUCCEEDED', revision: 2, jti: 'columns' })
    const said = fake.seen.slice(before).map(({ claims }) => `${claims.result_sets} ${claims.result_columns}`)
    // The queue may have taken an envelope twice.
    expect([...new Set(said)]).toEqual(['true true', 'undefined undefined'])
  })

  /**
   * A client that says the claim, and a worker that is of an older release from then on: it refuses the claim, and does
   * with the other envelopes as `rest` says. On a refusal the client's clock goes on by `refusedAheadMs`.
   */
  async function openOlder(rest: Script, refusedAheadMs = 0) {
    await announce(FEATURES)
    const time = { aheadMs: 0 }
    let isOlder = false
    const fake = worker(async (seen, tell) => {
      if (isOlder && !seen.claims.result_sets) return rest(seen, tell)
      if (isOlder) time.aheadMs = refusedAheadMs
      await tell(isOlder ? REFUSED : {})
      return undefined
    })
    const client = await open({ resendMs: 2_000, clock: () => Date.now() + time.aheadMs })
    await untilSaid(client, fake)
    isOlder = true
    const before = fake.seen.length
    return { client, time, envelopes: () => fake.seen.slice(before).map(({ claims }) => claims) }
  }
  const succeed: Script = async (_, tell) => {
    await tell({ revision: 2 })
    return undefined
  }

  it('sends a job again without the claim if a worker of an older release refuses it, and loses no job', async () => {
    const { client, envelopes } = await openOlder(succeed, 5_000)
    const card = await client.encryptCard({ cardNumber: '5555555555554444', expiryMonth: 12, expiryYear: 2031 })
    const request = { token_scope: parties.credentials.entityId, ...card }
    const result = await client.call('token-create', request, { jti: 'older' })
    expect(result).toMatchObject({ status: 'SUCCEEDED', revision: 2, jti: 'older' })
    // The first envelope, which is due at once by the client's clock, may go again before its refusal is read.
    expect([...new Set(envelopes().map(({ result_sets }) => result_sets))]).toEqual([true, undefined])
    for (const claims of envelopes()) expect(claims.request).toEqual(request)
    // The times decide whether the card is fresh.
    expect(new Set(envelopes().map(({ iat, exp, jti }) => `${iat} ${exp} ${jti}`)).size).toBe(1)
  })

  it('tells its callback nothing of such a refusal, even if it comes again after the answer', async () => {
    let isCopied = false
    const { client } = await openOlder(async (seen, tell) => {
      await succeed(seen, tell)
      await tell(REFUSED)
      isCopied = true
      return undefined
    })
    const told: string[] = []
    client.results(delivery => {
      if (delivery.type === 'result' && delivery.jti === 'told') told.push(delivery.status)
    })
    await client.submit('token-lifecycle', lifecycle(), { jti: 'told' })
    await until(async () => isCopied && told.includes('SUCCEEDED') && (await depth()) === 0)
    expect(told).toEqual(['SUCCEEDED'])
  })

  it.each([
    ['later', 0, [0, DAY_MS - 1_000]],
    ['at once', DAY_MS - 1_000, [DAY_MS - 1_000]],
  ])('renews a job without the claim whose lifetime ends %s', async (_, refusedAheadMs, aheadMs) => {
    const { client, time, envelopes } = await openOlder(async (seen, tell) => {
      if (time.aheadMs > 0) return succeed(seen, tell)
      time.aheadMs = DAY_MS - 1_000
      return undefined
    }, refusedAheadMs)
    const result = await client.call('token-lifecycle', lifecycle(), { timeoutMs: 300_000 })
    expect(result).toMatchObject({ status: 'SUCCEEDED', revision: 2 })
    expect([...new Set(envelopes().map(({ result_sets }) => result_sets))]).toEqual([true, undefined])
    expect(envelopes().at(-1)?.result_sets).toBeUndefined()
    const [first = 0] = envelopes().map(({ iat }) => iat * 1_000)
    // The jobs were sent within a few seconds.
    const minutes = envelopes()
      .filter(({ result_sets }) => !result_sets)
      .map(({ iat }) => Math.round((iat * 1_000 - first) / 60_000))
    expect([...new Set(minutes)]).toEqual(aheadMs.map(ms => Math.round(ms / 60_000)))
  })
})
