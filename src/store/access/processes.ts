// The live worker processes and their features, so that a sender uses nothing that one of them would refuse. A killed
// process leaves its row behind and counts as live until the row is old.
import type { Db } from '../pool.ts'

export interface LiveWorker {
  workerId: string
  /** The kinds whose queues it listens to. */
  kinds: readonly string[]
  /** The features beyond those of every release. */
  features: readonly string[]
}

/** Reports that this process is alive. */
export async function see(db: Db, { workerId, kinds, features }: LiveWorker): Promise<void> {
  await db.query({
    name: 'live-worker-see',
    text: `insert into tokenmill.live_worker (worker_id, kinds, features) values ($1, $2::text[], $3::text[])
on conflict (worker_id) do update set seen_at = now()`,
    values: [workerId, kinds, features],
  })
}

export async function leave(db: Db, workerId: string): Promise<void> {
  await db.query({ text: 'delete from tokenmill.live_worker where worker_id = $1', values: [workerId] })
}

/** Removes processes that were silent for `ms`. */
export async function removeSilent(db: Db, ms: number): Promise<void> {
  await db.query({
    name: 'live-workers-remove',
    text: 'delete from tokenmill.live_worker where seen_at < now() - make_interval(secs => $1 / 1000.0)',
    values: [ms],
  })
}

export async function list(db: Db): Promise<LiveWorker[]> {
  const { rows } = await db.query<{ worker_id: string; kinds: string[]; features: string[] }>({
    name: 'live-workers',
    text: 'select worker_id, kinds, features from tokenmill.live_worker order by worker_id',
  })
  return rows.map(row => ({ workerId: row.worker_id, kinds: row.kinds, features: row.features }))
}
