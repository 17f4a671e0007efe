// How many jobs the workers of a process may have in work. Jobs with a priority are background work. If a job without a
// priority came or ended on any queue of the process within the last second, background jobs get only some of the
// places, so that a job for which somebody waits finds few jobs before it. BullMQ decides which job is next.

import type { ReceivedJob } from './engine.ts'

/**
 * To this number the jobs with a priority that a worker has in work sink while other jobs come: jobs that end aren't
 * replaced.
 */
export const BACKGROUND_MAX = 16
const RECENT_MS = 1_000

/** The places of one worker. */
export interface Places {
  /** Call it when a job was taken, and the returned function when the job has ended. */
  take(job: Pick<ReceivedJob, 'isBackground'>): () => void
  /** How many jobs the worker may have in work now. */
  most(): number
}

/** The returned function makes the places of one worker; all workers of a process must use the same one. */
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
          // The limit sinks by one with each job that ends. If it sank at once, no job would be fetched until most jobs
          // in work have ended.
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
