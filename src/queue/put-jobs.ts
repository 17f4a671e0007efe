// Puts jobs on queues. Jobs for one queue that are put at the same time go there by one call. If that call fails, jobs
// for other queues are put all the same. What the jobs hold is unknown here.
import type { QueuedJob, Queues } from './engine.ts'
import { gather } from './gather.ts'

export interface Put {
  queue: string
  job: QueuedJob
}

const BOUNDS = { max: 100, lanes: 2 } as const

/** The returned function resolves once the job is on its queue, and rejects if the queue didn't take it. */
export function openPut(queues: Pick<Queues, 'add' | 'addBulk'>): (put: Put) => Promise<void> {
  return gather({ together: puts => putAll(puts, queues), alone: ({ queue, job }) => queues.add(queue, job) }, BOUNDS)
}

/**
 * Returns an error or undefined for each job. If the call for a queue fails, all its jobs get the error, although some
 * may be on the queue: the caller may put them again under the same ids.
 */
export async function putAll(
  puts: readonly Put[],
  queues: Pick<Queues, 'add' | 'addBulk'>,
): Promise<readonly (Error | undefined)[]> {
  const failures = new Map<string, Error>()
  const add = (queue: string, jobs: QueuedJob[]) => {
    const [only] = jobs
    return only && jobs.length === 1 ? queues.add(queue, only) : queues.addBulk(queue, jobs)
  }
  const byQueue = [...Map.groupBy(puts, ({ queue }) => queue)]
  await Promise.all(
    byQueue.map(([queue, own]) =>
      add(
        queue,
        own.map(({ job }) => job),
      ).catch(error => {
        failures.set(queue, error instanceof Error ? error : new Error(String(error)))
      }),
    ),
  )
  return puts.map(({ queue }) => failures.get(queue))
}
