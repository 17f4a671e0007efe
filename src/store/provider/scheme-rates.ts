// The rate that each process wants of a network's limit, and the rate that it was given. The process that holds the
// lock computes the rates and decides whose rows are deleted. The database's clock plays no part.
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface RateRow {
  provider: string
  process: string
  interactive: boolean
  /** The wanted rate, in calls per second. */
  wants: { interactive: number; bulk: number }
  /** The rate that the process may be using now, in calls per second. */
  holds: number
  /** Counts the renewals by the process. */
  beat: number
}

/** What slows calls: 429, 5xx, or the circuit breaker. */
export type SlowedBy = 'throttled' | 'failing' | 'breaker_open'

/** The rate at which a process calls a provider. */
export interface Pace {
  /** The rate in the scheme file, for the whole installation, in calls per second. */
  granted: number
  /** The process's current rate, as a part of that, in calls per second. */
  rate: number
  /** Undefined: the provider doesn't slow the process. */
  slowdown: { by: SlowedBy; forMs: number } | undefined
}

/**
 * Takes the lock until the transaction ends: one process at a time. A process that stops in the middle would hold up
 * all others, so PostgreSQL ends a connection that is idle in the transaction. Throws `LostRace` if the wait is too
 * long.
 */
export async function hold(db: Db): Promise<void> {
  await db.query({
    name: 'scheme-rates-bounds',
    text: `select set_config('idle_in_transaction_session_timeout', '1500', true), set_config('lock_timeout', '3000', true)`,
  })
  await db.query({
    name: 'scheme-rates-hold',
    text: `select pg_advisory_xact_lock(hashtextextended('tokenmill scheme rates', 0))`,
  })
}

export async function findAll(db: Db): Promise<RateRow[]> {
  const { rows } = await db.query<RateRow>({
    name: 'scheme-rates',
    text: `select
  provider,
  process,
  interactive,
  json_build_object('interactive', wanted_interactive, 'bulk', wanted_bulk) as wants,
  given as holds,
  beat
from tokenmill.scheme_rate`,
  })
  return rows
}

/** Writes this process's rows. The caller holds the lock. `paces`: by provider. */
export async function writeAll(db: Db, rows: readonly RateRow[], paces: ReadonlyMap<string, Pace>): Promise<void> {
  const pace = rows.map(({ provider }) => paces.get(provider))
  await db.query({
    name: 'scheme-rates-write',
    text: `insert into tokenmill.scheme_rate (
  provider,
  process,
  interactive,
  wanted_interactive,
  wanted_bulk,
  given,
  beat,
  granted,
  rate,
  slowed_by,
  slowed_at,
  renewed_at
)
select
  v.provider,
  v.process,
  v.interactive,
  v.wanted_interactive,
  v.wanted_bulk,
  v.given,
  v.beat,
  v.granted,
  v.rate,
  v.slowed_by,
  now() - make_interval(secs => v.slowed_seconds),
  now()
from unnest(
  $1::text[],
  $2::uuid[],
  $3::boolean[],
  $4::float8[],
  $5::float8[],
  $6::float8[],
  $7::bigint[],
  $8::float8[],
  $9::float8[],
  $10::text[],
  $11::float8[]
)
  as v(
    provider,
    process,
    interactive,
    wanted_interactive,
    wanted_bulk,
    given,
    beat,
    granted,
    rate,
    slowed_by,
    slowed_seconds
  )
on conflict (provider, process) do update
set
  wanted_interactive = excluded.wanted_interactive,
  wanted_bulk = excluded.wanted_bulk,
  given = excluded.given,
  beat = excluded.beat,
  granted = excluded.granted,
  rate = excluded.rate,
  slowed_by = excluded.slowed_by,
  slowed_at = excluded.slowed_at,
  renewed_at = excluded.renewed_at`,
    values: [
      texts(rows.map(row => row.provider)),
      plains(rows.map(row => row.process)),
      plains(rows.map(row => String(row.interactive))),
      plains(rows.map(row => row.wants.interactive)),
      plains(rows.map(row => row.wants.bulk)),
      plains(rows.map(row => row.holds)),
      plains(rows.map(row => row.beat)),
      plains(pace.map(one => one?.granted ?? null)),
      plains(pace.map(one => one?.rate ?? null)),
      plains(pace.map(one => one?.slowdown?.by ?? null)),
      plains(pace.map(one => (one?.slowdown ? one.slowdown.forMs / 1_000 : null))),
    ],
  })
}

export interface SlowedRow {
  provider: string
  granted: number
  rate: number
  by: SlowedBy
  /** ms since the epoch. */
  since: number
}

/** The processes that renewed their share within `seenMs` and that a provider slows; one row per process. */
export async function listSlowed(db: Db, seenMs: number): Promise<SlowedRow[]> {
  const { rows } = await db.query<SlowedRow>({
    text: `select
  provider,
  granted,
  rate,
  slowed_by as by,
  slowed_at as since
from tokenmill.scheme_rate
where slowed_at is not null and renewed_at > now() - make_interval(secs => $1)
order by provider, slowed_at`,
    values: [seenMs / 1_000],
  })
  return rows
}

/** Deletes the rows of these processes; what they held is free for others. */
export async function removeOf(db: Db, processes: readonly string[]): Promise<void> {
  if (processes.length === 0) return
  await db.query({
    name: 'scheme-rates-remove',
    text: `delete from tokenmill.scheme_rate
where process = any($1::uuid[])`,
    values: [plains(processes)],
  })
}
