// What a reader makes of a delivery with several results: each is handled once, and the delivery is acknowledged when all
// are. And when a sender says that its readers read such deliveries.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Client, type ConnectOptions, connect, type Delivery } from '../../producers/client.ts'
import { NOTHING_ACKNOWLEDGED, openInbox } from '../../producers/results.ts'
import { sealResult } from '../../src/job/answer/result.ts'
import { sealResultSet } from '../../src/job/answer/result-set.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { receiptId, resultId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { startScript } from '../support/process.ts'
import { until } from '../support/until.ts'
import {
  answersOf,
  type FakeWorker,
  fakeWorker,
  handleOf,
  lifecycle,
  makeParties,
  type Parties,
  silent,
} from './bundle.ts'

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
    for (const name of [queue(), 'token-lifecycle']) await queues.obliterate(name)
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
      v: 1,
      type: 'result',
      result_id: resultId(receipt, revision),
      receipt_id: receipt,
      revision,
      jti,
      kind: 'token-lifecycle',
      answers: answersOf('token-lifecycle'),
      status: 'SUCCEEDED',
      code: 204,
      attempt: 1,
      accepted_at: now,
      completed_at: now,
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
    const calls = jtis.map(jti => client.result(handleOf(parties, jti)))
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

  function worker(): FakeWorker {
    const opened = fakeWorker(queues, parties, ['token-lifecycle'])
    closers.push(opened.close)
    return opened
  }
  it('is asked for by a sender with a results queue of its own', async () => {
    const fake = worker()
    const said = async (options: Partial<ConnectOptions>, resultColumns?: boolean) => {
      const client = await open(options)
      await client.call('token-lifecycle', lifecycle(), { resultColumns })
      // Of two clients that read one queue, each leaves the other's results for seconds.
      await client.close()
      return fake.seen.at(-1)?.claims.optional
    }
    expect(await said({})).toEqual({ result_sets: true })
    expect(await said({ resultSets: false })).toBeUndefined()
    expect(await said({ replyTo: undefined })).toBeUndefined()
    expect(await said({ replyTo: undefined, resultSets: true })).toEqual({ result_sets: true })
    // Records in columns are for a caller who asks for them.
    expect(await said({}, true)).toEqual({ result_sets: true, result_columns: true })
    expect(await said({}, false)).toEqual({ result_sets: true })
    expect(await said({ resultSets: false }, true)).toBeUndefined()
    expect(await said({ replyTo: undefined, resultSets: true }, true)).toEqual({ result_sets: true })
  })
})
