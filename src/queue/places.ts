// How many jobs the workers of a process may have in hand. Jobs with a priority are background work: while other jobs come,
// too, on whatever queue, only some places are theirs, so that a job for which somebody waits finds few of them before it.
// BullMQ says which job is next.

import type { ReceivedJob } from './engine.ts'

/** So many jobs with a priority a worker has in hand while others come, too. */
export const BACKGROUND_MAX = 16
const RECENT_MS = 1_000

/** The places of one worker. */
export interface Places {
  /** A job was taken. The result is called when it has ended. */
  take(job: Pick<ReceivedJob, 'isBackground'>): () => void
  /** How many jobs the worker may have in hand now. */
  most(): number
}

/** The result gives each worker of a process its places. */
export function openPlaces(now: () => number = () => performance.now()): (concurrency: number) => Places {
  let otherAt = Number.NEGATIVE_INFINITY
  return concurrency => {
    let others = 0
    return {
      take({ isBackground }) {
        if (isBackground) return () => {}
        others += 1
        otherAt = now()
        return () => {
          others -= 1
          otherAt = now()
        }
      },
      most: () => (now() - otherAt < RECENT_MS ? Math.min(concurrency, BACKGROUND_MAX + others) : concurrency),
    }
  }
}
