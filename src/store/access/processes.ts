// The processes of the long-running roles: which process runs where, its release, and the features that workers
// understand, so that a sender uses no feature that a worker would refuse. A killed process leaves its row behind;
// readers decide how old a row may be.
import type { Db } from '../pool.ts'

export const WORKER_ROLES = ['interactive', 'bulk'] as const
export type ProcessRole = (typeof WORKER_ROLES)[number] | 'scheduler' | 'gateway' | 'three-ds'

export interface NewProcess {
  processId: string
  role: ProcessRole
  host: string
  /** The release of tokenmill. */
  version: string
  /** The kinds whose queues the process listens to; empty if it isn't a worker. */
  kinds: readonly string[]
  /** The features that the worker understands. */
  features: readonly string[]
  /** The most connections to the store that the process opens. */
  connections: number
}

export interface ProcessRow extends Omit<NewProcess, 'features'> {
  /** ms since the epoch. */
  startedAt: number
  /** The time since its last heartbeat, by the store's clock. */
  silentMs: number
}

export type LiveWorker = Pick<NewProcess, 'kinds' | 'features'> & Pick<ProcessRow, 'silentMs'>

const SILENT_MS = '(greatest(0, extract(epoch from now() - seen_at)) * 1000)::bigint as silent_ms'

/** Writes a heartbeat of this process. */
export async function see(db: Db, { processId, role, host, version, ...more }: NewProcess): Promise<void> {
  const { kinds, features, connections } = more
  if (kinds.length === 0) {
    // Leaves out the columns that the gateway's role may not write.
    await db.query({
      name: 'process-see',
      text: `insert into tokenmill.process (process_id, role, host, version, connections) values ($1, $2, $3, $4, $5)
on conflict (process_id) do update set seen_at = now()`,
      values: [processId, role, host, version, connections],
    })
    return
  }
  await db.query({
    name: 'process-see-worker',
    text: `insert into tokenmill.process (process_id, role, host, version, connections, kinds, features)
values ($1, $2, $3, $4, $5, $6::text[], $7::text[])
on conflict (process_id) do update set seen_at = now()`,
    values: [processId, role, host, version, connections, kinds, features],
  })
}

/** Marks the process as ended on purpose, so that it isn't reported as missing. */
export async function leave(db: Db, processId: string): Promise<void> {
  await db.query({ text: 'update tokenmill.process set ended_at = now() where process_id = $1', values: [processId] })
}

/** Removes rows of processes that ended or were silent for `ms`; returns how many. */
export async function removeSilent(db: Db, ms: number): Promise<number> {
  const { count } = await db.query({
    name: 'processes-remove',
    text: `delete from tokenmill.process
where ended_at is not null or seen_at < now() - make_interval(secs => $1 / 1000.0)`,
    values: [ms],
  })
  return count
}

/** Workers that were silent for less than `ms`. */
export async function listWorkers(db: Db, ms: number): Promise<LiveWorker[]> {
  const { rows } = await db.query<{ kinds: string[]; features: string[]; silent_ms: number }>({
    name: 'live-workers',
    text: `select kinds, features, ${SILENT_MS} from tokenmill.process where kinds <> '{}' and ended_at is null
and seen_at >= now() - make_interval(secs => $1 / 1000.0) order by process_id`,
    values: [ms],
  })
  return rows.map(({ silent_ms: silentMs, ...said }) => ({ ...said, silentMs }))
}

interface Row {
  process_id: string
  role: ProcessRole
  host: string
  version: string
  kinds: string[]
  connections: number
  started_at: number
  silent_ms: number
}

/** All processes that were not marked as ended. */
export async function list(db: Db): Promise<ProcessRow[]> {
  const { rows } = await db.query<Row>({
    text: `select process_id, role, host, version, kinds, connections, started_at, ${SILENT_MS}
from tokenmill.process where ended_at is null order by host, role, started_at`,
  })
  return rows.map(row => ({
    processId: row.process_id,
    role: row.role,
    host: row.host,
    version: row.version,
    kinds: row.kinds,
    connections: row.connections,
    startedAt: row.started_at,
    silentMs: row.silent_ms,
  }))
}
