// The client library against a real queue server and a scripted worker: what it refuses to send, when a job counts as
// answered, which results it accepts, and its limits.
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import {
  type Client,
  ClosedError,
  type ConnectOptions,
  connect,
  type Delivery,
  type RefusedError,
  UnansweredError,
} from '../../producers/client.ts'
import { NOTHING_ACKNOWLEDGED } from '../../producers/results.ts'
import { sealResult } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { jobId, receiptId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import {
  answer,
  type FakeWorker,
  fakeWorker,
  handleOf,
  lifecycle,
  makeParties,
  type Parties,
  type Script,
  silent,
} from './bundle.ts'

describeRedis('client', () => {
  let queues: Queues
  let parties: Parties
  const closers: (() => Promise<void>)[] = []

  beforeAll(async () => {
    parties = await makeParties()
  })
  beforeEach(async () => {
    const prefix = `{client-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
  })
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    for (const queue of [resultsQueue(clientId()), 'token-lifecycle', 'token-create']) await queues.obliterate(queue)
    await queues.close()
  })
  afterAll(() => expect(closers).toEqual([]))

  const clientId = () => parties.credentials.signingKey.clientId
  async function open(options: Partial<ConnectOptions> = {}): Promise<Client> {
    const client = await connect({
      queues,
      credentials: parties.credentials,
      log: silent,
      resendMs: 60_000,
      ...options,
    })
    closers.push(client.close)
    return client
  }
  function worker(script?: Script): FakeWorker {
    const opened = fakeWorker(queues, parties, ['token-lifecycle', 'token-create', 'token-update'], script)
    closers.push(opened.close)
    return opened
  }

  it('refuses a plain cvv, a clear card and an unknown field without sending anything', async () => {
    const client = await open()
    const token = lifecycle().id
    const refusals = [
      client.submit('token-update', { id: token, cvv: '123' }),
      client.submit('token-create', { card: { cardNumber: '4111111111111111' } }),
      client.submit('token-lifecycle', { ...lifecycle(), when: 'now' }),
      client.submit('token-update', { id: token, encrypted_card: 'x.y.z' }),
      client.submit('token-create', lifecycle(), { sequence: 1 }),
      client.submit('token-lifecycle', lifecycle(), { reference: 'line\nbreak' }),
      client.submit('token-lifecycle', lifecycle(), { expiresInMs: 8 * 86_400_000 }),
      client.submit('token-lifecycle', lifecycle(), { block: 'a.b.c.d.e' }),
      ...[1.5, -1, 2_097_152, Number.NaN, '1' as never].map(priority =>
        client.submit('token-lifecycle', lifecycle(), { priority }),
      ),
      client.submit('reversal' as 'report', {}),
      client.encryptCard({ cardNumber: '4111111111111111', cvv: '123' } as { cardNumber: string }),
    ]
    const reasons = await Promise.all(
      refusals.map(refused =>
        refused.then(
          () => undefined,
          (error: RefusedError) => Object.keys(error.problem.details ?? {}).join(),
        ),
      ),
    )
    expect(reasons).toEqual([
      'body.cvv',
      'body.token_scope,body.encrypted_card,body.public_key_alias,body.card',
      'body.when',
      'body.public_key_alias',
      'body.token_scope,body.encrypted_card,body.public_key_alias,body.id,body.action',
      'body.reference',
      'body.exp',
      'body.block',
      ...Array.from({ length: 5 }, () => 'body.priority'),
      'body.kind',
      'body.cvv',
    ])
    for (const kind of ['token-update', 'token-create', 'token-lifecycle', 'reversal'])
      expect((await queues.depth(kind)).waiting).toBe(0)
  })

  it('never repeats what it refused in the words of the error', async () => {
    const client = await open()
    const refused = await client
      .submit('token-create', { card: { cardNumber: '4111111111111111' }, '4111111111111111': 1 })
      .catch((error: RefusedError) => error)
    expect(JSON.stringify([refused, (refused as Error).message])).not.toContain('4111')
  })

  it('sends a signed envelope under the id that follows from client and jti, and resolves with its result', async () => {
    const { seen } = worker()
    const client = await open()
    const result = await client.call('token-lifecycle', lifecycle(), { jti: 'order-7', reference: 'r7', sequence: 3 })
    expect(result).toMatchObject({ status: 'SUCCEEDED', jti: 'order-7', reference: 'r7', revision: 1 })
    expect(result.receipt_id).toBe(receiptId(clientId(), 'order-7'))
    expect(seen).toHaveLength(1)
    expect(seen[0]?.id).toBe(jobId(clientId(), 'order-7'))
    expect(seen[0]?.claims).toMatchObject({ iss: clientId(), aud: 'tokenmill', kind: 'token-lifecycle', sequence: 3 })
    await until(() => client.counts().taken === 1)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 1 })
  })

  it('refuses a wrong priority to its caller alone, though all are sent together', async () => {
    const client = await open()
    const priorities = [0, 1.5, 10, 2_097_151, 3_000_000]
    const sent = await Promise.allSettled(
      priorities.map(priority => client.submit('token-lifecycle', lifecycle(), { priority })),
    )
    const failed = sent.map(end => (end.status === 'rejected' ? end.reason.name : undefined))
    expect(failed).toEqual([undefined, 'RefusedError', undefined, undefined, 'RefusedError'])
    expect((await queues.depth('token-lifecycle')).waiting).toBe(3)
  })

  it('encrypts a card, so that a create holds no clear digit', async () => {
    const { seen } = worker()
    const client = await open()
    const card = await client.encryptCard({ cardNumber: '5555555555554444', expiryMonth: 12, expiryYear: 2031 })
    await client.call('token-create', { token_scope: parties.credentials.entityId, ...card })
    expect(card.public_key_alias).toBe('shop-1')
    expect(JSON.stringify(seen)).not.toContain('55555555')
  })

  it('sends an unanswered job again under the same jti until a result is found', async () => {
    let times = 0
    const { seen } = worker(async (_, tell) => {
      times += 1
      if (times === 3) await tell()
      return undefined
    })
    const client = await open({ resendMs: 60 })
    const result = await client.call('token-lifecycle', lifecycle(), { jti: 'lost' })
    expect(result.jti).toBe('lost')
    expect(seen.map(({ claims }) => claims.jti)).toEqual(['lost', 'lost', 'lost'])
    expect(new Set(seen.map(({ jws }) => jws)).size).toBe(1)
    await until(async () => (await queues.depth('token-lifecycle')).waiting === 0)
  })

  it('signs a repeat anew where the first envelope would expire, but never stretches a lifetime that was asked for', async () => {
    let aheadMs = 0
    const { seen } = worker(async ({ claims }, tell) => {
      const times = seen.filter(other => other.claims.jti === claims.jti).length
      if (times === 2) await tell()
      // The client repeats the job until it reads the result; under load that is more than once.
      if (times === 1) aheadMs += 86_400_000
      return undefined
    })
    const client = await open({ resendMs: 60, clock: () => Date.now() + aheadMs })
    await client.call('token-lifecycle', lifecycle(), { jti: 'open' })
    await client.call('token-lifecycle', lifecycle(), { jti: 'fixed', expiresInMs: 1_000 })
    const iats = (jti: string) => seen.filter(({ claims }) => claims.jti === jti).map(({ claims }) => claims.iat)
    expect(new Set(iats('open')).size).toBe(2)
    expect(new Set(iats('fixed')).size).toBe(1)
  })

  it('says so when no result came in time, and still finds it later', async () => {
    const gate = Promise.withResolvers<void>()
    worker(async (_, tell) => {
      await gate.promise
      await tell()
      return undefined
    })
    const client = await open()
    const handle = await client.submit('token-lifecycle', lifecycle())
    const error = await client.result(handle, { timeoutMs: 50 }).catch((reason: Error) => reason)
    expect(error).toBeInstanceOf(UnansweredError)
    expect((error as Error).message).toMatch(/^no result of job .* within 50 ms/)
    gate.resolve()
    expect((await client.result(handle)).receipt_id).toBe(handle.receiptId)
  })

  it('answers for a handle that an earlier process stored', async () => {
    const client = await open()
    const handle = handleOf(parties, 'before')
    const pending = client.result(handle)
    await answer(queues, parties, { jti: 'before', kind: 'token-lifecycle' })
    expect((await pending).jti).toBe('before')
  })

  it('takes nothing for a result that the installation did not sign for this client', async () => {
    const stranger = await makeParties()
    const client = await open()
    const handle = await client.submit('token-lifecycle', lifecycle(), { jti: 'mine' })
    const claims = { jti: 'mine', kind: 'token-lifecycle' as const }
    const { credentials } = parties
    await answer(queues, { credentials, installation: stranger.installation }, claims)
    await queues.add(resultsQueue(clientId()), { id: 'r_bare', data: { body: '{"v":1}' } })
    await queues.add(resultsQueue(clientId()), { id: 'r_text', data: 'no object' })
    await until(() => client.counts().forged === 3)
    await expect(client.result(handle, { timeoutMs: 20 })).rejects.toThrow(UnansweredError)
    const { envelope } = handle
    await answer(queues, parties, claims, { envelope, record: { token_status: 'SUSPENDED' } })
    expect((await client.result(handle)).record).toEqual({ token_status: 'SUSPENDED' })
    await until(async () => (await queues.depth(resultsQueue(clientId()))).waiting === 0)
  })

  it('passes over an event of a type that it does not know, and takes those that it knows', async () => {
    const client = await open()
    const got: Delivery[] = []
    client.results(delivery => {
      got.push(delivery)
    })
    const event = (type: string, resultId: string) => {
      const body = JSON.stringify({ v: 1, type: 'event', result_id: resultId, event: type, subject: {}, data: {} })
      const data = sealResult(body, { clientId: clientId(), resultId, revision: 0 }, parties.installation)
      return queues.add(resultsQueue(clientId()), { id: `r_${resultId}`, data })
    }
    await event('batch.abducted', 'e1')
    await event('batch.finished', 'e2')
    await until(() => client.counts().taken === 1 && client.counts().unknown === 1)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 1, unknown: 1 })
    expect(got).toMatchObject([{ event: 'batch.finished' }])
  })

  it('refuses another request under a jti that is unanswered, and joins the same one', async () => {
    const gate = Promise.withResolvers<void>()
    const { seen } = worker(async (_, tell) => {
      await gate.promise
      await tell()
      return undefined
    })
    const client = await open()
    const handle = await client.submit('token-lifecycle', lifecycle(), { jti: 'twice' })
    const again = client.call('token-lifecycle', lifecycle(), { jti: 'twice' })
    await expect(
      client.submit('token-lifecycle', { ...lifecycle(), action: 'DELETE' }, { jti: 'twice' }),
    ).rejects.toThrow('body.jti: jti_reused')
    gate.resolve()
    expect(await again).toEqual(await client.result(handle))
    expect(seen).toHaveLength(1)
  })

  it('compares what it signed, even if the caller has changed its objects since', async () => {
    const client = await open()
    const transaction: Record<string, unknown> = { amount: '1' }
    const chunk = { batch_id: 'b', chunk: 0, transactions: [{ line: 1, transaction }] }
    const handle = await client.submit('transaction-batch', chunk, { jti: 'b-0' })
    transaction['amount'] = '2'
    await expect(client.submit('transaction-batch', chunk, { jti: 'b-0' })).rejects.toThrow('body.jti: jti_reused')
    transaction['amount'] = '1'
    expect(await client.submit('transaction-batch', chunk, { jti: 'b-0' })).toEqual(handle)
  })

  it('gives each result to the callback once, lower revisions never, and acknowledges it when the callback is through', async () => {
    const client = await open()
    const got: number[] = []
    const gate = Promise.withResolvers<void>()
    client.results(async delivery => {
      await gate.promise
      if (delivery.type === 'result') got.push(delivery.revision)
    })
    const claims = { jti: 'rev', kind: 'token-lifecycle' as const }
    await answer(queues, parties, claims, { revision: 2 })
    await until(async () => (await queues.depth(resultsQueue(clientId()))).active === 1)
    expect(client.counts().taken).toBe(0)
    gate.resolve()
    await until(() => client.counts().taken === 1)
    for (const revision of [2, 1, 2, 3, 3]) {
      const { taken } = client.counts()
      await answer(queues, parties, claims, { revision })
      await until(() => client.counts().taken === taken + 1)
    }
    expect(got).toEqual([2, 3])
  })

  it('offers a result again when the callback rejects', async () => {
    const client = await open()
    let times = 0
    client.results(() => {
      times += 1
      if (times === 1) throw new Error('not now')
    })
    await answer(queues, parties, { jti: 'again', kind: 'token-lifecycle' })
    await until(() => client.counts().taken === 1)
    expect(times).toBe(2)
  })

  it('runs no more callbacks at once than it was told', async () => {
    const client = await open()
    let running = 0
    let most = 0
    const got: Delivery[] = []
    client.results(
      async delivery => {
        running += 1
        most = Math.max(most, running)
        await new Promise(resolve => setImmediate(resolve))
        running -= 1
        got.push(delivery)
      },
      { concurrency: 3 },
    )
    for (let i = 0; i < 40; i += 1) await answer(queues, parties, { jti: `c${i}`, kind: 'token-lifecycle' })
    await until(() => got.length === 40)
    expect(most).toBeLessThanOrEqual(3)
  })

  it('leaves a result that is not its own to other processes for a while', async () => {
    const one = await open()
    const other = await open()
    const handle = handleOf(parties, 'theirs')
    await one.result(handleOf(parties, 'none'), { timeoutMs: 10 }).catch(() => {})
    await answer(queues, parties, { jti: 'theirs', kind: 'token-lifecycle' })
    await until(async () => (await queues.depth(resultsQueue(clientId()))).delayed === 1)
    // Otherwise chance decides which of them takes it next, and each further delay is longer.
    await one.close()
    expect((await other.result(handle)).jti).toBe('theirs')
  })

  it("acknowledges in the end what nobody waits for, so that it is in nobody's way", async () => {
    const client = await open({ resendMs: 60 })
    await client.submit('token-lifecycle', lifecycle(), { jti: 'other' })
    await answer(queues, parties, { jti: 'nobody', kind: 'token-lifecycle' })
    await until(() => client.counts().unclaimed === 1)
  })

  it('keeps no more in flight than it was told, however many there are', async () => {
    const { seen, openMax } = worker()
    const client = await open()
    let pulled = 0
    let answered = 0
    let ahead = 0
    function* items() {
      for (let i = 0; i < 400; i += 1) {
        pulled += 1
        ahead = Math.max(ahead, pulled - answered)
        yield { kind: 'token-lifecycle' as const, request: lifecycle(), jti: `b-${i}`, number: i }
      }
    }
    const numbers: number[] = []
    for await (const { item, result } of client.bulk(items(), { inFlight: 20 })) {
      answered += 1
      expect(result.jti).toBe(item.jti)
      numbers.push(item.number)
    }
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, i) => i))
    expect(seen).toHaveLength(400)
    expect(ahead).toBeLessThanOrEqual(21)
    expect(openMax()).toBeLessThanOrEqual(20)
  })

  it('gives what it refuses in bulk as a result that was never sent', async () => {
    const { seen } = worker()
    const client = await open()
    const results = []
    const items = [
      { kind: 'token-lifecycle' as const, request: lifecycle(), jti: 'good' },
      { kind: 'token-lifecycle' as const, request: { id: 'short' }, jti: 'bad', reference: 'r' },
    ]
    for await (const { result } of client.bulk(items)) results.push([result.jti, result.code, result.attempt])
    expect(results.sort()).toEqual([
      ['bad', 400, 0],
      ['good', 200, 1],
    ])
    expect(seen).toHaveLength(1)
  })

  it('ends a bulk with the error of its source, after the results of what was sent', async () => {
    worker()
    const client = await open()
    async function* items() {
      yield { kind: 'token-lifecycle' as const, request: lifecycle() }
      throw new Error('the source broke')
    }
    const results: unknown[] = []
    const run = async () => {
      for await (const answered of client.bulk(items())) results.push(answered)
    }
    await expect(run()).rejects.toThrow('the source broke')
    expect(results).toHaveLength(1)
  })

  it('stops a bulk that nobody reads on, and closes its source', async () => {
    worker()
    const client = await open()
    let closed = false
    async function* items() {
      try {
        for (;;) yield { kind: 'token-lifecycle' as const, request: lifecycle() }
      } finally {
        closed = true
      }
    }
    for await (const _ of client.bulk(items(), { inFlight: 5 })) break
    expect(closed).toBe(true)
  })

  it('waits for room when too many jobs are unanswered, and is freed by close', async () => {
    const client = await open({ unansweredMax: 2 })
    await client.submit('token-lifecycle', lifecycle())
    await client.submit('token-lifecycle', lifecycle())
    const third = client.submit('token-lifecycle', lifecycle()).catch((error: Error) => error)
    const pending = client.call('token-lifecycle', lifecycle()).catch((error: Error) => error)
    await client.close()
    expect(await third).toBeInstanceOf(ClosedError)
    expect(await pending).toBeInstanceOf(ClosedError)
    expect((await queues.depth('token-lifecycle')).waiting).toBe(2)
  })
})

describeRedis('client without its queue server', () => {
  it('rejects a submit with queue_away, and retries a bulk until the server is back', async () => {
    const server = await startRedis()
    const parties = await makeParties()
    const open = () => openRedis([server.url], { prefix: '{t}', lockMs: 30_000, log: silent })
    const queues = await open()
    const client = await connect({ queues, credentials: parties.credentials, log: silent, resendMs: 200 })
    const worker = fakeWorker(queues, parties, ['token-lifecycle'])
    try {
      await client.call('token-lifecycle', lifecycle())
      await server.kill9()
      await expect(client.submit('token-lifecycle', lifecycle())).rejects.toMatchObject({ code: 'queue_away' })
      const results: string[] = []
      const items = Array.from({ length: 20 }, (_, i) => ({
        kind: 'token-lifecycle' as const,
        request: lifecycle(),
        jti: `${i}a`,
      }))
      const run = (async () => {
        for await (const { result } of client.bulk(items)) results.push(result.jti)
      })()
      await server.restart()
      await run
      expect(new Set(results).size).toBe(20)
      expect(results).toHaveLength(20)
    } finally {
      await client.close()
      await worker.close()
      await queues.close()
      await server.stop()
    }
  })

  it('refuses to connect without queues and without credentials', async () => {
    const { credentials } = await makeParties()
    await expect(connect({ credentials })).rejects.toThrow(TypeError)
    await expect(connect({ redisUrl: 'redis://127.0.0.1:1' })).rejects.toThrow(TypeError)
    await expect(connect({ redisUrl: 'redis://127.0.0.1:1', credentials })).rejects.toMatchObject({
      code: 'queue_away',
    })
  })
})
