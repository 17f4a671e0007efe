// The processes of the long-running roles: which process runs where, its release, and the features that workers
// understand, so that a sender uses no feature that a worker would refuse. A killed process leaves its row behind;
// readers decide how old a row may be.
import type { PlannedRow, ProcessRole } from '../connection/plan.ts'
import type { Db } from '../pool.ts'
import { WORK_MINUTES, type WorkMinute } from '../watch/work-minutes.ts'

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
  /** The keys of the vault that the process holds: ids of key-encryption keys, and data keys as `purpose/version`. */
  keys: readonly string[]
  /** The epoch of the keys' lives by which it goes; null if it opens no vault. */
  keyEpoch?: number | null
  /** How long its recent interactive jobs on cards took, 99th percentile in ms; null after too few. */
  workMs?: number | null
  /** How many processes want each core of its host, if it is a worker. */
  load?: number
  /** What it did in its last minutes, if it is a worker. */
  work?: readonly WorkMinute[]
}

export interface ProcessRow extends Omit<NewProcess, 'features' | 'keys' | 'keyEpoch' | 'workMs' | 'work' | 'load'> {
  /** ms since the epoch. */
  startedAt: number
  /** The time since its last heartbeat, by the store's clock. */
  silentMs: number
}

type Named = Pick<ProcessRow, 'host' | 'role' | 'silentMs'>

/** Whether another process was started in the place of one that fell silent: nobody needs to look after that one. */
export function isReplaced(silent: Named, alive: readonly Pick<ProcessRow, 'host' | 'role' | 'startedAt'>[]): boolean {
  const diedAt = Date.now() - silent.silentMs
  return alive.some(({ host, role, startedAt }) => host === silent.host && role === silent.role && startedAt > diedAt)
}

export type LiveWorker = Pick<NewProcess, 'kinds' | 'features'> & Pick<ProcessRow, 'silentMs'>

const SILENT_MS = '(greatest(0, extract(epoch from now() - seen_at)) * 1000)::bigint as "silentMs"'

const COLUMNS = `
  process_id as "processId",
  role,
  host,
  version,
  kinds,
  connections,
  started_at as "startedAt",
  ${SILENT_MS}`

/**
 * Writes a heartbeat of this process. The database roles of gateway and console write no row: a function of the database writes
 * it, so that such a process can say nothing about another role, nor about time.
 */
export async function see(db: Db, process: NewProcess): Promise<void> {
  const { processId, role, host, version, kinds, features, connections, keys } = process
  const { workMs = null, work = [], load = null, keyEpoch = null } = process
  if (role === 'gateway') {
    await db.query({
      name: 'process-see-gateway',
      text: 'select tokenmill.see_gateway($1, $2, $3, $4, $5::text[])',
      values: [processId, host, version, connections, keys],
    })
    return
  }
  if (role === 'console') {
    await db.query({
      name: 'process-see-console',
      text: 'select tokenmill.see_console($1, $2, $3, $4)',
      values: [processId, host, version, connections],
    })
    return
  }
  // All columns are written anew, so that the row is this process's also if a gateway has made one under its id meanwhile.
  await db.query({
    name: 'process-see',
    text: `insert into tokenmill.process (
  process_id,
  role,
  host,
  version,
  connections,
  kinds,
  features,
  keys,
  work_ms,
  work,
  load,
  key_epoch
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6::text[],
  $7::text[],
  $8::text[],
  $9,
  $10::jsonb,
  $11,
  $12
)
on conflict (process_id) do update
set
  seen_at = now(),
  role = excluded.role,
  host = excluded.host,
  version = excluded.version,
  connections = excluded.connections,
  kinds = excluded.kinds,
  features = excluded.features,
  keys = excluded.keys,
  work_ms = excluded.work_ms,
  work = excluded.work,
  load = excluded.load,
  key_epoch = excluded.key_epoch`,
    values: [
      ...[processId, role, host, version, connections, kinds, features, keys, workMs, JSON.stringify(work), load],
      keyEpoch,
    ],
  })
}

/** Writes what a worker did, when its last jobs have ended. */
export async function tellWork(db: Db, processId: string, work: readonly WorkMinute[]): Promise<void> {
  await db.query({
    text: `update tokenmill.process
set work = $2::jsonb
where process_id = $1`,
    values: [processId, JSON.stringify(work)],
  })
}

/** Marks the process as ended on purpose, so that it isn't reported as missing. */
export async function leave(db: Db, { processId, role }: Pick<NewProcess, 'processId' | 'role'>): Promise<void> {
  const text =
    role === 'gateway' || role === 'console'
      ? `select tokenmill.leave_${role}($1)`
      : `update tokenmill.process
set ended_at = now()
where process_id = $1`
  await db.query({ text, values: [processId] })
}

/** Removes rows of processes that were silent for `ms`, and of those that ended some time ago; returns how many. */
export async function removeSilent(db: Db, ms: number): Promise<number> {
  const { count } = await db.query({
    name: 'processes-remove',
    text: `delete from tokenmill.process
where ended_at < now() - make_interval(secs => $2 / 1000.0) or seen_at < now() - make_interval(secs => $1 / 1000.0)`,
    values: [ms, WORK_MINUTES.endedMs],
  })
  return count
}

/** Workers that were silent for less than `ms` and haven't ended. */
export async function listWorkers(db: Db, ms: number): Promise<LiveWorker[]> {
  const { rows } = await db.query<LiveWorker>({
    name: 'live-workers',
    text: `select kinds, features, ${SILENT_MS}
from tokenmill.process
where kinds <> '{}' and ended_at is null and seen_at >= now() - make_interval(secs => $1 / 1000.0)
order by process_id`,
    values: [ms],
  })
  return rows
}

/**
 * How long interactive jobs on cards take in the slowest process that was silent for less than `ms`; null if no process
 * reports it.
 */
export async function findWorkMs(db: Db, ms: number): Promise<number | null> {
  const { rows } = await db.query<{ workMs: number | null }>({
    name: 'process-work-ms',
    text: `select max(work_ms) as "workMs"
from tokenmill.process
where ended_at is null
and seen_at >= now() - make_interval(secs => $1 / 1000.0)`,
    values: [ms],
  })
  return rows[0]?.workMs ?? null
}
/** The roles that open the vault. */
const VAULT_ROLES: readonly ProcessRole[] = ['interactive', 'bulk', 'three-ds']

/**
 * Processes of these roles that were silent for less than `ms` and don't hold `key`.
 */
export async function listLacking(
  db: Db,
  key: string,
  ms: number,
  roles: readonly ProcessRole[] = VAULT_ROLES,
): Promise<ProcessRow[]> {
  const { rows } = await db.query<ProcessRow>({
    text: `select ${COLUMNS}
from tokenmill.process
where role = any($3::text[]) and ended_at is null and not keys @> array[$1]
  and seen_at >= now() - make_interval(secs => $2 / 1000.0)
order by host, role, started_at`,
    values: [key, ms, `{${roles.join(',')}}`],
  })
  return rows
}

/** Processes that open the vault and were silent for less than `ms`, with the keys that they hold. */
export async function listVault(db: Db, ms: number): Promise<(ProcessRow & Pick<NewProcess, 'keys'>)[]> {
  const { rows } = await db.query<ProcessRow & Pick<NewProcess, 'keys'>>({
    text: `select ${COLUMNS}, keys
from tokenmill.process
where role in ('interactive', 'bulk', 'three-ds') and ended_at is null
  and seen_at >= now() - make_interval(secs => $1 / 1000.0)
order by host, role, started_at`,
    values: [ms],
  })
  return rows
}

/** Processes that open the vault, were silent for less than `ms`, and go by lives of keys before this epoch. */
export async function listBehind(db: Db, epoch: number, ms: number): Promise<ProcessRow[]> {
  const { rows } = await db.query<ProcessRow>({
    text: `select ${COLUMNS}
from tokenmill.process
where role in ('interactive', 'bulk', 'three-ds') and ended_at is null and coalesce(key_epoch, 0) < $1
  and seen_at >= now() - make_interval(secs => $2 / 1000.0)
order by host, role, started_at`,
    values: [epoch, ms],
  })
  return rows
}

/** All processes that were not marked as ended. */
export async function list(db: Db): Promise<ProcessRow[]> {
  const { rows } = await db.query<ProcessRow>({
    text: `select ${COLUMNS}
from tokenmill.process
where ended_at is null
order by host, role, started_at`,
  })
  return rows
}

/** What the processes that were silent for less than `ms` may open. */
export async function listPlanned(db: Db, ms: number): Promise<PlannedRow[]> {
  const { rows } = await db.query<PlannedRow>({
    text: `select
  role,
  host,
  login,
  connections
from tokenmill.process
where ended_at is null and seen_at >= now() - make_interval(secs => $1 / 1000.0)
order by host, role`,
    values: [ms],
  })
  return rows
}
