// The data that dry runs store: how many rows each client has sent per day, and the cards that a run has seen.
import type { TokenRow } from '../../token/token.ts'
import { texts, uuidBytes, uuids } from '../binary.ts'
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
export type ScratchRow = Omit<TokenRow, 'cards' | 'link' | 'sealed'> & Pick<StoredToken, 'sealVersion'>

/** Members that are null aren't stored. */
type StoredRow = Partial<ScratchRow>

/** What a row says of the members that it leaves out. */
const ABSENT = {
  suspendedReason: null,
  bin: null,
  lastFour: null,
  expiryMonth: null,
  expiryYear: null,
  cardHolderName: null,
  cardHolderEmail: null,
  cardSequence: null,
  startMonth: null,
  startYear: null,
  brand: null,
  cardBrand: null,
  binRange: null,
  analyticsToken: null,
  thirdParty: null,
  tokenExpiryDate: null,
  lastReceipt: null,
  mark: null,
  givenAt: null,
  sealVersion: null,
} satisfies StoredRow

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

/** The rows that other chunks of this dry run would have left for these cards, by fingerprint. `prints`: 16 bytes each. */
export async function findScratch(
  db: Db,
  run: string,
  chunk: number,
  prints: Buffer,
): Promise<Map<string, ScratchRow>> {
  if (prints.length === 0) return new Map()
  const { rows } = await db.query<{ card: string; row: StoredRow }>({
    name: 'scratch-find',
    text: `select
  found.fingerprint as card,
  found.row
from unnest($2::uuid[]) as wanted(card)
cross join lateral (
  select
    fingerprint,
    row
  from tokenmill.scratch
  where run = $1 and fingerprint = wanted.card and chunk <> $3
  limit 1
) as found`,
    values: [run, uuids(prints), chunk],
  })
  return new Map(rows.map(({ card, row }) => [card, { ...ABSENT, ...row } as ScratchRow]))
}

/** What a chunk of a dry run would leave for a card. */
export interface ScratchEntry {
  /** The card's fingerprint. */
  fp: string
  row: ScratchRow
  /** The chunk has read the row that another chunk stored for this card, and replaces it. */
  isSeen: boolean
}

/**
 * Stores the rows that this chunk would leave. Throws LostRace if another chunk stored a row for a card after this chunk
 * had looked.
 */
export async function saveScratch(db: Db, run: string, chunk: number, entries: readonly ScratchEntry[]): Promise<void> {
  if (entries.length === 0) return
  const sorted = entries.toSorted((a, b) => (a.fp < b.fp ? -1 : 1))
  const { count } = await db.query({
    name: 'scratch-save',
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
  v.row::json
from unnest($3::uuid[], $4::text[]) as v(card, row)
on conflict (run, fingerprint) do update
set row = excluded.row
where scratch.chunk = excluded.chunk or scratch.fingerprint = any($5::uuid[])`,
    values: [
      run,
      chunk,
      uuids(uuidBytes(sorted.map(({ fp }) => fp))),
      texts(sorted.map(({ row }) => storedText(row))),
      uuids(uuidBytes(sorted.flatMap(({ fp, isSeen }) => (isSeen ? fp : [])))),
    ],
  })
  if (count !== sorted.length) throw new LostRace('another chunk of the dry run left the same card meanwhile')
}

function storedText(row: ScratchRow): string {
  const said: StoredRow & { [name: string]: unknown } = {}
  for (const [name, value] of Object.entries(row)) if (value !== null) said[name] = value
  return JSON.stringify(said)
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
