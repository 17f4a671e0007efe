// Adds several jobs to a queue of BullMQ's PostgreSQL engine by one statement. BullMQ's own function for that makes two
// temporary tables in each call, which costs as much as fifty jobs. Options that only BullMQ knows are left to BullMQ.
import type { IQueueBackend } from 'bullmq'

/** Of a pool with the search path `bullmq`. */
type Query = (text: string, values: unknown[]) => Promise<{ rows: unknown[] }>
type Entries = Parameters<IQueueBackend['addJobs']>[0]

/** Calls the function with which BullMQ adds a single job, so each job gets the row and the events that it would get. */
const ADD = `select add_job($1, id, $1, data::jsonb, opts::jsonb, priority, 0, added_at, attempts,
  null, null, null, null, null, false) as id
from unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::int[])
  as job (id, data, opts, priority, added_at, attempts)`

/** `queue`: its name, which each of its jobs has, too. Adds all jobs or none. */
export function addByOneStatement(backend: IQueueBackend, queue: string, query: Query): void {
  const addAsBullMQ = backend.addJobs.bind(backend)
  backend.addJobs = async entries => {
    if (!entries.every(entry => isPlain(queue, entry))) return addAsBullMQ(entries)
    const options = entries.map(({ job }) => job.opts ?? {})
    const { rows } = await query(ADD, [
      queue,
      entries.map(({ jobId }) => jobId),
      entries.map(({ job }) => job.data),
      options.map(opts => JSON.stringify(opts)),
      options.map(({ priority }) => priority ?? 0),
      entries.map(({ job }) => job.timestamp),
      options.map(({ attempts }) => attempts ?? 1),
    ])
    return (rows as { id: string }[]).map(({ id }) => id)
  }
}

/** The job has an id and belongs to nothing else. */
function isPlain(queue: string, { job, jobId, parentKeyOpts }: Entries[number]): boolean {
  const opts = job.opts ?? {}
  const isTied = job.parent ?? job.parentKey ?? job.repeatJobKey ?? job.deduplicationId ?? parentKeyOpts?.parentKey
  return Boolean(jobId) && job.name === queue && isTied === undefined && !job.delay && !opts.delay && !opts.lifo
}
