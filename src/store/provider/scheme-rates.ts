// What each process wants and was given of the rates that networks grant. How much that is, and whose rows are to go, is
// decided by whoever holds the lock; no clock of the database is asked.
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface RateRow {
  provider: string
  process: string
  interactive: boolean
  /** Calls per second. */
  wants: { interactive: number; bulk: number }
  /** Calls per second that it may be using. */
  holds: number
  /** Counts its renewals. */
  beat: number
}

interface Row {
  provider: string
  process: string
  interactive: boolean
  wanted_interactive: number
  wanted_bulk: number
  given: number
  beat: number
}

/**
 * One process at a time, until the end of its transaction. One that is stopped or cut off in the midst of it would hold
 * up all others: its connection is ended. Throws `LostRace` where the wait is too long.
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
  const { rows } = await db.query<Row>({
    name: 'scheme-rates',
    text: 'select provider, process, interactive, wanted_interactive, wanted_bulk, given, beat from tokenmill.scheme_rate',
  })
  return rows.map(row => ({
    provider: row.provider,
    process: row.process,
    interactive: row.interactive,
    wants: { interactive: row.wanted_interactive, bulk: row.wanted_bulk },
    holds: row.given,
    beat: row.beat,
  }))
}

/** Under the lock. */
export async function writeAll(db: Db, rows: readonly RateRow[]): Promise<void> {
  await db.query({
    name: 'scheme-rates-write',
    text: `insert into tokenmill.scheme_rate (provider, process, interactive, wanted_interactive, wanted_bulk, given, beat)
select v.provider, v.process, v.interactive, v.wanted_interactive, v.wanted_bulk, v.given, v.beat
from unnest($1::text[], $2::uuid[], $3::boolean[], $4::float8[], $5::float8[], $6::float8[], $7::bigint[])
  as v(provider, process, interactive, wanted_interactive, wanted_bulk, given, beat)
on conflict (provider, process) do update set wanted_interactive = excluded.wanted_interactive,
  wanted_bulk = excluded.wanted_bulk, given = excluded.given, beat = excluded.beat`,
    values: [
      texts(rows.map(row => row.provider)),
      plains(rows.map(row => row.process)),
      plains(rows.map(row => String(row.interactive))),
      plains(rows.map(row => row.wants.interactive)),
      plains(rows.map(row => row.wants.bulk)),
      plains(rows.map(row => row.holds)),
      plains(rows.map(row => row.beat)),
    ],
  })
}

/** What these processes held is others'. */
export async function removeOf(db: Db, processes: readonly string[]): Promise<void> {
  if (processes.length === 0) return
  await db.query({
    name: 'scheme-rates-remove',
    text: 'delete from tokenmill.scheme_rate where process = any($1::uuid[])',
    values: [plains(processes)],
  })
}
