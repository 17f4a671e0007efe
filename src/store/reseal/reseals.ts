// How far each re-encryption has come: one row for each purpose. A worker works under a lease. It writes the place that
// it has reached in the same transaction as the rows that it has sealed anew, so that another worker can continue from
// there.
import { type Db, LostRace } from '../pool.ts'

export interface Reseal {
  purpose: string
  /** The workers seal everything anew under this version. */
  version: number
  state: 'RUNNING' | 'CANCELLED' | 'DONE'
  pass: number
  /** ms since the epoch, as are all times here. */
  passBeganAt: number
  passScanned: number
  /** Rows of this pass that named another version. */
  passFound: number
  /** How many of the `passFound` rows were sealed anew. */
  passDone: number
  /** How many of the `passFound` rows could not be opened. */
  passFailed: number
  /** The last row that could not be opened, in this pass or the one before. */
  failedRow: string | null
  atColumn: string | null
  atKey: string | null
  /** Rows that were sealed anew, in all passes. */
  rowsDone: number
  /** Rows that were looked at per second lately. */
  rowsPerSecond: number | null
  rowsExpected: number | null
  startedAt: number
  endedAt: number | null
  /** When the last pass that found nothing began. */
  cleanAt: number | null
  /** Whether a worker holds the lease now. */
  isHeld: boolean
}

const COLUMNS = `
  purpose,
  version,
  state,
  pass,
  pass_began_at as "passBeganAt",
  pass_scanned as "passScanned",
  pass_found as "passFound",
  pass_done as "passDone",
  pass_failed as "passFailed",
  failed_row as "failedRow",
  at_column as "atColumn",
  at_key as "atKey",
  rows_done as "rowsDone",
  rows_per_second as "rowsPerSecond",
  rows_expected as "rowsExpected",
  started_at as "startedAt",
  ended_at as "endedAt",
  clean_at as "cleanAt",
  (lease is not null and due_at > now()) as "isHeld"`

export async function find(db: Db, purpose: string): Promise<Reseal | undefined> {
  const { rows } = await db.query<Reseal>({
    text: `select ${COLUMNS}
from tokenmill.reseal
where purpose = $1`,
    values: [purpose],
  })
  return rows[0]
}

/** Reads the row and locks it until the transaction ends. */
export async function hold(db: Db, purpose: string): Promise<Reseal | undefined> {
  await db.query({
    text: `select
from tokenmill.reseal
where purpose = $1
for update`,
    values: [purpose],
  })
  return find(db, purpose)
}

/** Begins a re-encryption at the first row, and forgets an earlier one of the purpose. */
export async function begin(
  db: Db,
  { purpose, version, rowsExpected }: Pick<Reseal, 'purpose' | 'version'> & { rowsExpected: number | undefined },
): Promise<void> {
  await db.query({
    text: `delete from tokenmill.reseal
where purpose = $1`,
    values: [purpose],
  })
  await db.query({
    text: `insert into tokenmill.reseal (purpose, version, rows_expected)
values ($1, $2, $3)`,
    values: [purpose, version, rowsExpected],
  })
}

/** Resumes a cancelled re-encryption where it stopped. */
export async function resume(db: Db, purpose: string): Promise<void> {
  await db.query({
    text: `update tokenmill.reseal
set
  state = 'RUNNING',
  ended_at = null,
  lease = null,
  due_at = now()
where purpose = $1`,
    values: [purpose],
  })
}

/** Cancels a re-encryption: the worker that has the lease stops when it next writes or renews the lease. */
export async function cancel(db: Db, purpose: string): Promise<void> {
  await db.query({
    text: `update tokenmill.reseal
set
  state = 'CANCELLED',
  ended_at = now(),
  lease = null,
  rows_per_second = null
where purpose = $1`,
    values: [purpose],
  })
}

/** Takes the lease of a re-encryption that is due; undefined if there is none. */
export async function take(db: Db, lease: string, leaseMs: number): Promise<Reseal | undefined> {
  const { rows } = await db.query<Reseal>({
    name: 'reseal-take',
    text: `update tokenmill.reseal
set lease = $1, due_at = now() + $2 * interval '1 millisecond'
where purpose = (
  select purpose
  from tokenmill.reseal
  where state = 'RUNNING' and due_at <= now()
  order by due_at, purpose
  limit 1
  for update skip locked
)
returning ${COLUMNS}`,
    values: [lease, leaseMs],
  })
  return rows[0]
}

/** Which lease works on which purpose, and how long the lease lasts unless it is renewed. */
export interface Held {
  purpose: string
  lease: string
  leaseMs: number
}

export interface Step {
  /** The last row that the pass has reached; null at the beginning of a pass. */
  at: { column: string; key: string } | null
  scanned: number
  found: number
  done: number
  failed: number
  failedRow: string | null
  rowsPerSecond: number | null
}

const RENEWED = `due_at = now() + $3 * interval '1 millisecond'`
const HELD = `purpose = $1 and lease = $2 and state = 'RUNNING'`

/** Writes the place that the pass has reached. Throws `LostRace` if the lease was lost, or the re-encryption cancelled. */
export async function advance(db: Db, { purpose, lease, leaseMs }: Held, step: Step): Promise<void> {
  const { at, scanned, found, done, failed, failedRow, rowsPerSecond } = step
  const { count } = await db.query({
    name: 'reseal-advance',
    text: `update tokenmill.reseal
set
  ${RENEWED},
  at_column = $4,
  at_key = $5,
  pass_scanned = pass_scanned + $6,
  pass_found = pass_found + $7,
  rows_done = rows_done + $8,
  pass_done = pass_done + $8,
  pass_failed = pass_failed + $9,
  failed_row = coalesce($10, failed_row),
  rows_per_second = coalesce($11, rows_per_second)
where ${HELD}`,
    values: [
      ...[purpose, lease, leaseMs, at?.column ?? null, at?.key ?? null],
      ...[scanned, found, done, failed, failedRow, rowsPerSecond],
    ],
  })
  if (count === 0) throw new LostRace('the re-encryption was cancelled, or another worker has it')
}

/** Renews the lease. False if the lease was lost, or the re-encryption cancelled. */
export async function renew(db: Db, { purpose, lease, leaseMs }: Held): Promise<boolean> {
  const { count } = await db.query({
    name: 'reseal-renew',
    text: `update tokenmill.reseal
set ${RENEWED}
where ${HELD}`,
    values: [purpose, lease, leaseMs],
  })
  return count === 1
}

/** Gives the lease back. Another worker may take it after `pauseMs`. */
export async function giveBack(db: Db, { purpose, lease }: Held, pauseMs: number): Promise<void> {
  await db.query({
    text: `update tokenmill.reseal
set lease = null, due_at = now() + $3 * interval '1 millisecond'
where ${HELD}`,
    values: [purpose, lease, pauseMs],
  })
}

/** Begins the next pass. If `version` differs from the row's, the count of passes begins anew, too. */
export async function beginPass(db: Db, { purpose, lease, leaseMs }: Held, version: number): Promise<void> {
  await db.query({
    text: `update tokenmill.reseal
set
  ${RENEWED},
  pass = case when version = $4 then pass + 1 else 1 end,
  started_at = case when version = $4 then started_at else now() end,
  version = $4,
  pass_began_at = now(),
  failed_row = case when pass_failed > 0 then failed_row end,
  pass_scanned = 0,
  pass_found = 0,
  pass_done = 0,
  pass_failed = 0,
  at_column = null,
  at_key = null
where ${HELD}`,
    values: [purpose, lease, leaseMs, version],
  })
}

/** Ends the re-encryption: its last pass has proved that nothing is left under another version. */
export async function finish(db: Db, { purpose, lease }: Held): Promise<void> {
  await db.query({
    text: `update tokenmill.reseal
set
  state = 'DONE',
  lease = null,
  ended_at = now(),
  clean_at = pass_began_at,
  rows_per_second = null,
  failed_row = null
where ${HELD}`,
    values: [purpose, lease],
  })
}
