// The data that dry runs store: how many rows each client has sent per day, and the cards that a run has seen.
import { texts } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import type { StoredToken } from '../token/tokens.ts'

/** Adds `rows` to the client's use of today and returns the day's total. */
export async function use(db: Db, clientId: string, rows: number): Promise<number> {
  const result = await db.query<{ rows: number }>({
    text: `insert into tokenmill.dry_run (client_id, day, rows)
values ($1, now()::date, $2)
on conflict (client_id, day) do update
set rows = dry_run.rows + excluded.rows
returning rows`,
    values: [clientId, rows],
  })
  return result.rows[0]?.rows ?? 0
}

/** A token's row without its number and fingerprints. */
export type ScratchRow = Omit<StoredToken, 'cards' | 'storedCards' | 'link' | 'sealed'>

/** The literal of a bytea array with these fingerprints. */
function bytesOf(fps: readonly string[]): string {
  return texts(fps.map(fp => `\\x${fp.replaceAll('-', '')}`))
}

/**
 * The version of the fingerprint key under which this dry run keeps its cards: `version`, if this is its first chunk, else
 * that of its first chunk.
 */
export async function pinVersion(db: Db, run: string, version: number): Promise<number> {
  const { rows } = await db.query<{ version: number }>({
    text: `with pinned as (
  insert into tokenmill.scratch_run (run, version)
  values ($1, $2)
  on conflict (run) do nothing
  returning version
)
select version
from pinned
union all
select version
from tokenmill.scratch_run
where run = $1
limit 1`,
    values: [run, version],
  })
  // Another chunk may have pinned it since this statement began.
  return rows[0]?.version ?? pinVersion(db, run, version)
}

/** The rows that other chunks of this dry run would have left for these cards, by fingerprint. */
export async function findScratch(
  db: Db,
  run: string,
  chunk: number,
  fps: readonly string[],
): Promise<Map<string, ScratchRow>> {
  const { rows } = await db.query<{ card: string; row: ScratchRow }>({
    text: `select encode(found.fingerprint, 'hex')::uuid as card, found.row
from unnest($2::bytea[]) as wanted(card)
cross join lateral (select fingerprint, row from tokenmill.scratch where run = $1 and fingerprint = wanted.card and chunk <> $3 limit 1) as found`,
    values: [run, bytesOf(fps), chunk],
  })
  return new Map(rows.map(({ card, row }) => [card, row]))
}

/**
 * Stores the rows that this chunk would leave. `isSeen`: the chunk has read the row that another chunk stored for this
 * card, and replaces it. Throws LostRace if another chunk stored a row for a card after this chunk had looked.
 */
export async function saveScratch(
  db: Db,
  run: string,
  chunk: number,
  entries: readonly { fp: string; row: ScratchRow; isSeen: boolean }[],
): Promise<void> {
  if (entries.length === 0) return
  const sorted = entries.toSorted((a, b) => (a.fp < b.fp ? -1 : 1))
  const { count } = await db.query({
    text: `insert into tokenmill.scratch (
  run,
  chunk,
  fingerprint,
  row
)
select
  $1,
  $2,
  v.card,
  v.row::jsonb
from unnest($3::bytea[], $4::text[]) as v(card, row)
on conflict (run, fingerprint) do update
set row = excluded.row
where scratch.chunk = excluded.chunk or scratch.fingerprint = any($5::bytea[])`,
    values: [
      run,
      chunk,
      bytesOf(sorted.map(entry => entry.fp)),
      texts(sorted.map(entry => JSON.stringify(entry.row))),
      bytesOf(sorted.filter(entry => entry.isSeen).map(entry => entry.fp)),
    ],
  })
  if (count !== sorted.length) throw new LostRace('another chunk of the dry run left the same card meanwhile')
}

/**
 * Erases rows older than `before` (ms since the epoch), of dry runs that ended without erasing them, `page` at a time: run
 * by run, which the table's key finds. Returns how many rows.
 */
export async function eraseOldScratch(db: Db, before: number, page: number): Promise<number> {
  const old = new Date(before)
  const { rows: runs } = await db.query<{ run: string }>({
    text: `select run
from tokenmill.scratch_run
where created_at < $1`,
    values: [old],
  })
  let erased = 0
  for (const { run } of runs) {
    erased += await eraseScratch(db, 'run = $3 and', { old, page, values: [run] })
    await db.query({
      text: `delete from tokenmill.scratch_run
where run = $1`,
      values: [run],
    })
  }
  // Rows of a release before that table, and those that a run left after it was forgotten.
  return erased + (await eraseScratch(db, '', { old, page, values: [] }))
}

async function eraseScratch(
  db: Db,
  which: string,
  { old, page, values }: { old: Date; page: number; values: unknown[] },
): Promise<number> {
  for (let erased = 0; ; ) {
    const { count } = await db.query({
      text: `delete from tokenmill.scratch
  where ${which} created_at < $1 and ctid = any(array(
  select ctid
  from tokenmill.scratch
  where ${which} created_at < $1
  limit $2
))`,
      values: [old, page, ...values],
    })
    erased += count
    if (count < page) return erased
  }
}

/** Erases the daily use before `before` (ms since the epoch). Returns how many days. */
export async function eraseOldUse(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.dry_run
where day < $1`,
    values: [new Date(before)],
  })
  return count
}
