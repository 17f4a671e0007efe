// Callers that ask for the same job at the same time, under one jti: none is told that a job is on its queue that isn't, none
// waits for ever, and one that leaves takes nothing from the others.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Client, connect } from '../../../producers/client.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { jobId } from '../../../src/job/envelope/ids.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { openRedis } from '../../../src/queue/open-redis.ts'
import { describeRedis, redisUrl } from '../../support/engines.ts'
import { answerWhenSent, fakeWorker, lifecycle, makeParties, type Parties, silent } from '../bundle.ts'

const KIND = 'token-lifecycle'
const PUT_MS = 50

describeRedis('callers that ask for the same job', () => {
  let queues: Queues
  let parties: Parties
  let client: Client | undefined
  /** So many calls that put a job fail, each after 50 ms. */
  let failing = 0
  let puts = 0
  beforeAll(async () => {
    parties = await makeParties()
  })
  beforeEach(async () => {
    const prefix = `{joined-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    ;[failing, puts] = [0, 0]
  })
  afterEach(async () => {
    await client?.close()
    for (const queue of [resultsQueue(parties.credentials.signingKey.clientId), KIND]) await queues.obliterate(queue)
    await queues.close()
  })
  afterAll(() => expect(failing).toBe(0))

  async function open(resendMs = 60_000): Promise<Client> {
    const attempt = async (put: () => Promise<void>) => {
      puts += 1
      if (failing === 0) return put()
      failing -= 1
      await pause(PUT_MS)
      throw new Error('away')
    }
    const shaky: Queues = {
      ...queues,
      add: (queue, job) => attempt(() => queues.add(queue, job)),
      addBulk: (queue, jobs) => attempt(() => queues.addBulk(queue, jobs)),
    }
    client = await connect({ queues: shaky, credentials: parties.credentials, log: silent, resendMs })
    return client
  }
  const request = lifecycle()

  it('are all told that the queue did not take it', async () => {
    const { submit } = await open()
    failing = 1
    const ends = await Promise.allSettled([1, 2, 3].map(() => submit(KIND, request, { jti: 'x' })))
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(puts).toBe(1)
    await submit(KIND, request, { jti: 'x' })
    expect(await queues.depth(KIND)).toMatchObject({ waiting: 1 })
  })

  it('get its answer, also one of a bulk that joined a job before that failed', async () => {
    const worker = fakeWorker(queues, parties, [KIND])
    const { submit, bulk } = await open()
    failing = 1
    const first = submit(KIND, request, { jti: 'x' })
    const results: string[] = []
    const reading = (async () => {
      for await (const { result } of bulk([{ kind: KIND, request, jti: 'x' }])) results.push(result.status)
    })()
    await expect(first).rejects.toMatchObject({ code: 'queue_away' })
    await reading
    expect(results).toEqual(['SUCCEEDED'])
    await worker.close()
  })

  it('keep it when one of them leaves: it is still sent, and answered', async () => {
    const { submit, bulk, result } = await open(200)
    const handle = await submit(KIND, request, { jti: 'x' })
    const other = result(handle, { timeoutMs: 300_000 })
    const two = [
      { kind: KIND, request, jti: 'x' },
      { kind: KIND, request: lifecycle(), jti: 'y' },
    ] as const
    const { clientId } = parties.credentials.signingKey
    void answerWhenSent(queues, parties, { jti: 'y', kind: KIND })
    // The loop is left while x is unanswered.
    for await (const answered of bulk(two)) {
      expect(answered.item.jti).toBe('y')
      break
    }
    // x is lost by the queue server.
    await queues.obliterate(KIND)
    const worker = fakeWorker(queues, parties, [KIND])
    expect(await other).toMatchObject({ status: 'SUCCEEDED' })
    expect(worker.seen.map(({ id }) => id)).toContain(jobId(clientId, 'x'))
    await worker.close()
  })

  it('end its sending when the last of them leaves', async () => {
    const { bulk } = await open(200)
    const jobs = ['x', 'y'].map(jti => ({ kind: KIND as typeof KIND, request, jti }))
    const readers = [1, 2].map(async () => {
      void answerWhenSent(queues, parties, { jti: 'y', kind: KIND })
      for await (const _ of bulk(jobs)) break
    })
    await Promise.all(readers)
    const before = puts
    await pause(1_000)
    expect(puts).toBe(before)
  })
})
