// How much waits in the queues, for /metrics. Asked at most every ten seconds: counting is dear on the PostgreSQL engine.
import { FAILED_QUEUE, type Kind } from '../../src/job/catalogue.ts'
import type { Deps } from '../deps.ts'

const KEPT_MS = 10_000

export function measureQueues(
  { queues, metrics, clock }: Pick<Deps, 'queues' | 'metrics' | 'clock'>,
  kinds: readonly Kind[],
): () => Promise<void> {
  let measuredAt = 0
  return async () => {
    if (clock() - measuredAt < KEPT_MS) return
    measuredAt = clock()
    for (const queue of kinds) {
      const depth = await queues.depth(queue)
      for (const [state, jobs] of Object.entries(depth)) metrics.queueDepth.set({ queue, state }, jobs)
      metrics.queueOldest.set({ queue }, ((await queues.oldestMs(queue)) ?? 0) / 1000)
      metrics.queueDepth.set(
        { queue: FAILED_QUEUE(queue), state: 'waiting' },
        (await queues.depth(FAILED_QUEUE(queue))).waiting,
      )
    }
  }
}
