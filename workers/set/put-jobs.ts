// Puts jobs on queues: those that are put at the same time go to their queue by one call. A queue that doesn't take its
// jobs keeps no other queue's back.
import type { QueuedJob, Queues } from '../../src/queue/engine.ts'
import { gather } from './gather.ts'

export interface Put {
  queue: string
  job: QueuedJob
}

const BOUNDS = { max: 100, lanes: 2 } as const

/** Resolves once the job is on its queue. */
export function openPut(queues: Pick<Queues, 'add' | 'addBulk'>): (put: Put) => Promise<void> {
  return gather({ together: puts => putAll(puts, queues), alone: ({ queue, job }) => queues.add(queue, job) }, BOUNDS)
}

/** A call that fails may have put some of its jobs: each of them fails, and is put again under the same id later. */
async function putAll(
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
