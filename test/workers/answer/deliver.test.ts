// How published results become jobs on results queues: which go together, in deliveries of which size, and what becomes of
// those whose queue doesn't take them.
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ResultData } from '../../../src/job/answer/result.ts'
import { openDelivery, RESULT_SET } from '../../../src/job/answer/result-set.ts'
import type { QueuedJob } from '../../../src/queue/engine.ts'
import { type Message, openDeliver } from '../../../workers/answer/deliver.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const KEYS = new Map([['inst', { alg: 'EdDSA' as const, publicKey }]])
const signing = () => ({ key: { kid: 'inst', alg: 'EdDSA' as const, privateKey }, newKeys: [] })

/** Queues that note each call. `refuses`: the queue that takes nothing. */
function openQueues(refuses?: string) {
  const calls: { queue: string; jobs: QueuedJob[] }[] = []
  const addBulk = async (queue: string, jobs: QueuedJob[]) => {
    if (queue === refuses) throw new Error('away')
    calls.push({ queue, jobs })
  }
  return { calls, queues: { addBulk, add: (queue: string, job: QueuedJob) => addBulk(queue, [job]) } }
}

const message = (outboxId: number, over: Partial<Message> = {}): Message => ({
  outboxId,
  clientId: 'cone',
  replyTo: 'own',
  resultId: `result-${outboxId}`,
  revision: 1,
  inSets: true,
  body: JSON.stringify({ type: 'result', result_id: `result-${outboxId}` }),
  ...over,
})

/** The ids of the results in each delivery. */
function idsIn(jobs: readonly QueuedJob[]): string[][] {
  return jobs.map(({ data }) => {
    const opened = openDelivery(data, 'cone', KEYS)
    return opened.refused === undefined ? opened.results.map(({ result_id }) => result_id) : []
  })
}

describe('results that are published at the same time', () => {
  it('go to a queue whose readers read sets in one delivery, and to another one by one', async () => {
    const { calls, queues } = openQueues()
    const deliver = openDeliver(queues, signing)
    const ends = await Promise.all([
      ...[1, 2, 3].map(id => deliver({ queue: 'new', message: message(id) })),
      ...[4, 5].map(id => deliver({ queue: 'old', message: message(id, { inSets: undefined }) })),
    ])
    expect(Object.fromEntries(calls.map(({ queue, jobs }) => [queue, idsIn(jobs)]))).toEqual({
      new: [['result-1', 'result-2', 'result-3']],
      old: [['result-4'], ['result-5']],
    })
    expect(ends).toEqual([
      { results: 3, isFirst: true },
      { results: 3, isFirst: false },
      { results: 3, isFirst: false },
      { results: 1, isFirst: true },
      { results: 1, isFirst: true },
    ])
  })

  it('of one queue go in sets or not as their senders said', async () => {
    const { calls, queues } = openQueues()
    const deliver = openDeliver(queues, signing)
    const inSets = [true, undefined, true, undefined, true]
    await Promise.all(inSets.map((said, id) => deliver({ queue: 'mixed', message: message(id, { inSets: said }) })))
    expect(calls.flatMap(({ jobs }) => idsIn(jobs)).sort()).toEqual([
      ['result-0', 'result-2', 'result-4'],
      ['result-1'],
      ['result-3'],
    ])
  })

  it('come alone in columns, in a delivery that readers of an older release take for a forgery', async () => {
    const { calls, queues } = openQueues()
    const deliver = openDeliver(queues, signing)
    const inColumns = [undefined, true, undefined]
    await Promise.all(inColumns.map((said, id) => deliver({ queue: 'new', message: message(id, { inColumns: said }) })))
    const jobs = calls.flatMap(call => call.jobs)
    expect(idsIn(jobs).sort()).toEqual([['result-0', 'result-2'], ['result-1']])
    const typs = jobs.map(({ data }) => {
      const [head = ''] = (data as ResultData).jws.split('.')
      return JSON.parse(Buffer.from(head, 'base64url').toString()).typ
    })
    expect(typs.sort()).toEqual(['tokenmill-result-columns+jwt', 'tokenmill-result-set+jwt'])
  })

  it('come alone as a single delivery, of the same id as from the sweep', async () => {
    const { calls, queues } = openQueues()
    const deliver = openDeliver(queues, signing)
    await deliver({ queue: 'new', message: message(7) })
    expect(calls[0]?.jobs.map(({ id }) => id)).toEqual(['r_result-7_7'])
    expect(idsIn(calls[0]?.jobs ?? [])).toEqual([['result-7']])
  })

  it('fit into sets of at most 100 results and 64 KiB, each result in one of them, in their order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.nat(500), fc.nat(RESULT_SET.bytesMax / 2 + 1_000)), { minLength: 1, maxLength: 250 }),
        async lengths => {
          const { calls, queues } = openQueues()
          const deliver = openDeliver(queues, signing)
          const messages = lengths.map((length, id) => {
            const body = { type: 'result', result_id: `result-${id}`, filler: 'ü'.repeat(length) }
            return message(id, { body: JSON.stringify(body) })
          })
          const ends = await Promise.all(messages.map(one => deliver({ queue: 'new', message: one })))
          const jobs = calls.flatMap(call => call.jobs)
          const sets = idsIn(jobs)
          expect(sets.flat()).toEqual(messages.map(({ resultId }) => resultId))
          expect(ends.filter(({ isFirst }) => isFirst)).toHaveLength(jobs.length)
          expect(new Set(jobs.map(({ id }) => id)).size).toBe(jobs.length)
          for (const [index, set] of sets.entries()) {
            const { body = '' } = (jobs[index]?.data ?? {}) as { body?: string }
            if (set.length > 1) expect(Buffer.byteLength(body)).toBeLessThanOrEqual(RESULT_SET.bytesMax + 2)
            expect(set.length).toBeLessThanOrEqual(RESULT_SET.resultsMax)
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it('fail with their queue, and no other queue with them', async () => {
    const { calls, queues } = openQueues('away')
    const deliver = openDeliver(queues, signing)
    const ends = await Promise.allSettled(
      ['away', 'new', 'away', 'new'].map((queue, id) => deliver({ queue, message: message(id) })),
    )
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect(calls.map(({ queue, jobs }) => [queue, idsIn(jobs)])).toEqual([['new', [['result-1', 'result-3']]]])
  })

  it('have the same id if they are delivered together again', async () => {
    const ids = async () => {
      const { calls, queues } = openQueues()
      const deliver = openDeliver(queues, signing)
      await Promise.all([3, 4].map(id => deliver({ queue: 'new', message: message(id) })))
      return calls.flatMap(({ jobs }) => jobs.map(({ id }) => id))
    }
    expect(await ids()).toEqual(await ids())
    expect((await ids())[0]).toMatch(/^s_[A-Za-z0-9_-]{43}$/)
  })
})
