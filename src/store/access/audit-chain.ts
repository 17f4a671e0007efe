// The head of the audit's chain, and how far its segments got: one row. The rows themselves are in audits.ts. A process
// locks this row before it numbers rows or cuts a segment, so the lease only saves work.
import { ConfigError } from '../../config.ts'
import type { Db } from '../pool.ts'

export interface Chain {
  /** The number of the last row, and its hash. */
  seq: number
  hash: Buffer
  /** The number of the last segment that was cut. */
  segment: number
  /** The last row in that segment, and its hash. */
  cutSeq: number
  cutHash: Buffer
  /** Its signed head; null before the first segment. */
  cutHead: string | null
  /** The first row of the segment that was cut and not sent yet; null if every segment was sent. */
  unsentFrom: number | null
  /** Somebody waits for a row to be outside. */
  wanted: boolean
  /** ms since the last segment was cut, and since the last one was sent. */
  cutMs: number
  sentMs: number
  /** How long the outside place has taken no segments, in ms; null if it takes them. */
  awayMs: number | null
}

const ms = (column: string) => `(extract(epoch from clock_timestamp() - ${column}) * 1000)::bigint`
const COLUMNS = `seq, hash, segment, cut_seq as "cutSeq", cut_hash as "cutHash", cut_head as "cutHead",
unsent_from as "unsentFrom", wanted, ${ms('cut_at')} as "cutMs", ${ms('sent_at')} as "sentMs", ${ms('away_since')} as "awayMs"`

/** After this time without the outside place acts on keys and exports are refused. */
export const AWAY_MS_MAX = 15 * 60_000

export async function find(db: Db): Promise<Chain> {
  const { rows } = await db.query<Chain>({
    name: 'audit-chain',
    text: `select ${COLUMNS}
from tokenmill.audit_chain`,
  })
  return only(rows)
}

/** Locks the chain until the transaction ends. */
export async function lock(db: Db): Promise<Chain> {
  const { rows } = await db.query<Chain>({
    name: 'audit-chain-lock',
    text: `select ${COLUMNS}
from tokenmill.audit_chain
for update`,
  })
  return only(rows)
}

function only(rows: Chain[]): Chain {
  if (!rows[0])
    throw new ConfigError('DATABASE_URL: the row of tokenmill.audit_chain is gone; run `tokenmill audit verify`')
  return rows[0]
}

/** Takes the lease, or keeps it. False if another process has it. */
export async function claim(db: Db, holder: string, leaseMs: number): Promise<boolean> {
  const { count } = await db.query({
    name: 'audit-chain-claim',
    text: `update tokenmill.audit_chain
set holder = $1, held_until = clock_timestamp() + make_interval(secs => $2 / 1000.0)
where holder = $1 or held_until is null or held_until < clock_timestamp()`,
    values: [holder, leaseMs],
  })
  return count === 1
}

export async function release(db: Db, holder: string): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set holder = null, held_until = null
where holder = $1`,
    values: [holder],
  })
}

/** Moves the head on. */
export async function advance(db: Db, { seq, hash }: Pick<Chain, 'seq' | 'hash'>): Promise<void> {
  await db.query({
    name: 'audit-chain-advance',
    text: `update tokenmill.audit_chain
set seq = $1, hash = $2`,
    values: [seq, hash],
  })
}

interface CutSegment {
  segment: number
  /** Its first row; `seq` is its last. */
  from: number
  seq: number
  hash: Buffer
  head: string
  /** Somebody still waits for a row behind it. */
  wanted: boolean
}

/** Cuts a segment, whose rows begin after those of the segment before. */
export async function cut(db: Db, { segment, from, seq, hash, head, wanted }: CutSegment): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set
  segment = $1,
  unsent_from = $2,
  cut_seq = $3,
  cut_hash = $4,
  cut_head = $5,
  cut_at = clock_timestamp(),
  wanted = $6`,
    values: [segment, from, seq, hash, head, wanted],
  })
}

/** Notes that the segment was sent, and where to. */
export async function sent(
  db: Db,
  segment: number,
  { name, isOutside }: { name: string; isOutside: boolean },
): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set
  unsent_from = null,
  sent_at = clock_timestamp(),
  away_since = null,
  place = $2,
  is_outside = $3
where segment = $1`,
    values: [segment, name, isOutside],
  })
}

/** Notes that the outside place took nothing. */
export async function markAway(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set away_since = coalesce(away_since, clock_timestamp())`,
  })
}

/** Clears the mark that the place is away, because the settings name no place any more. */
export async function clearAway(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set away_since = null
where away_since is not null`,
  })
}

/** Has the next segment cut at once. */
export async function want(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.audit_chain
set wanted = true
where not wanted`,
  })
}

/** Acts on keys, and exports: they are refused if the place of the audit has been away for too long. */
const NEEDS_OUTSIDE = new RegExp(
  `^(${[
    'data-key',
    'private-half',
    String.raw`kek(?!\.restore$)`,
    'capture-key',
    'signing-key',
    'role-key',
    String.raw`client\.key`,
    String.raw`client\.api-key`,
    String.raw`system\.key`,
    'threeds-contract',
    String.raw`manifest\.key`,
    'references',
    String.raw`report\.download`,
    String.raw`list\.exported`,
  ].join('|')})\\b`,
)

export function needsOutside(action: string): boolean {
  return NEEDS_OUTSIDE.test(action)
}

/** How long the outside place has been away, in ms, if that is too long for such an act. */
export async function tooLongAway(db: Db): Promise<number | undefined> {
  const { awayMs } = await find(db)
  return awayMs === null || awayMs < AWAY_MS_MAX ? undefined : awayMs
}

/** Throws `ConfigError` for such an act while the outside place has been away for too long. */
export async function assertNearby(db: Db, action: string): Promise<void> {
  const awayMs = needsOutside(action) ? await tooLongAway(db) : undefined
  if (awayMs === undefined) return
  throw new ConfigError(
    `AUDIT_URL: the place of the audit has taken no rows for ${Math.floor(awayMs / 60_000)} minutes; acts on keys and exports are refused until it does (tokenmill doctor)`,
  )
}
