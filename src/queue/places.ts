// How many jobs the workers of a process may have in hand. Jobs with a priority are background work. While other jobs
// come on any queue of the process, background jobs get only some of the places, so that a job for which somebody waits
// finds few jobs before it. BullMQ decides which job is next.

import type { ReceivedJob } from './engine.ts'

/** The most jobs with a priority that a worker takes while other jobs come; those that it has already go on. */
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
  const isRecent = () => now() - otherAt < RECENT_MS
  return concurrency => {
    let others = 0
    let limit = concurrency
    return {
      take({ isBackground }) {
        if (!isBackground) {
          others += 1
          otherAt = now()
        }
        return () => {
          // Lowered by one at a time: were it lowered at once, no job would be fetched until most of those in hand have ended.
          if (isBackground) limit = isRecent() ? Math.max(BACKGROUND_MAX, limit - 1) : concurrency
          else {
            others -= 1
            otherAt = now()
          }
        }
      },
      most() {
        if (!isRecent()) limit = concurrency
        return Math.min(concurrency, Math.max(limit, BACKGROUND_MAX + others))
      },
    }
  }
}
