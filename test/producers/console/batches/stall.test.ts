// Why a batch is stalled is said only where it was found: a look that had no time, or that did not see all, names no cause.
import { expect, it } from 'vitest'
import { whyStalledOf } from '../../../../producers/console/batches/stall.ts'
import { explainStalls } from '../../../../producers/operate/stalled-batches.ts'
import { openLog } from '../../../../src/log.ts'
import type { Queues } from '../../../../src/queue/engine.ts'
import type { SeenBatch } from '../../../../src/store/console/batches.ts'
import type { Store } from '../../../../src/store/pool.ts'

const BATCH = { clientId: 'c1', batchId: 'b1', recordKind: 'card' }
const reader = {
  facts: async () => ({ isRevoked: false, workers: 2, unread: 0 }),
  done: async () => [],
  seesFailed: async () => true,
  seesQueues: true,
}
const EMPTY = { waiting: 0, active: 0, delayed: 0, failed: 0 }

/** Queues without chunks, whose failed set has so many copies of another batch. */
const queuesWith = (copies: number, more: Partial<Queues> = {}) =>
  ({
    depth: async (name: string) => (name.startsWith('failed-') ? { ...EMPTY, waiting: copies } : EMPTY),
    list: async (_: string, __: string[], from: number, to: number) =>
      Array.from({ length: Math.max(0, Math.min(to + 1, copies) - from) }, (_, index) => ({
        id: `f_${String(copies - from - index).padStart(43, '0')}`,
        timestamp: 0,
        data: {
          jws: 'x',
          kind: 'token-batch',
          code: 'defect',
          attempt: 1,
          failedAt: 0,
          jobId: `${from + index}`,
          clientId: 'c2',
          jti: `${from + index}`,
        },
      })),
    ...more,
  }) as unknown as Queues
const whyOf = async (queues: Queues, more = {}) => {
  const [stall] = await explainStalls([BATCH], { reader, queues: async () => queues, now: 0, ...more })
  return stall?.why
}

it('a failed set that was read to its end without a copy of it means that nobody sends', async () => {
  expect(await whyOf(queuesWith(0))).toMatch(/^nobody sends/)
  expect(await whyOf(queuesWith(30))).toMatch(/^nobody sends/)
})

it('a look through the failed set that broke off does not', async () => {
  expect(await whyOf(queuesWith(30), { lookMs: 0 })).toMatch(/whether chunks of it failed is not known/)
  expect(await whyOf(queuesWith(500))).toMatch(/whether chunks of it failed is not known/)
})

it('the queue server does not answer only if it was asked and did not', async () => {
  const silent = queuesWith(0, { depth: () => new Promise(() => {}) })
  expect(await whyOf(silent, { answerMs: 50 })).toBe('the queue server does not answer')
  const failing = queuesWith(0, { depth: () => Promise.reject(new Error('away')) })
  expect(await whyOf(failing)).toBe('the queue server does not answer')
  const done = () => Promise.reject(new Error('the store is away'))
  await expect(
    explainStalls([BATCH], { reader: { ...reader, done }, queues: async () => queuesWith(1), now: 0 }),
  ).rejects.toThrow('the store')
})

it('a page whose turn did not come says no cause', async () => {
  const deps = { store: {} as Store, queues: queuesWith(0), clock: () => 0, log: openLog('silent') }
  const why = await whyStalledOf(
    deps,
    { personId: 'p', entities: null },
    BATCH as SeenBatch,
    () => new Promise(() => {}),
  )
  expect(why).toBe(undefined)
  const failed = await whyStalledOf(deps, { personId: 'p', entities: null }, BATCH as SeenBatch, () =>
    Promise.reject(new Error('the store is away')),
  )
  expect(failed).toBe(undefined)
})
