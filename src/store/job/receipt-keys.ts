// The keys of receipts: one row for each job that has a receipt, or was answered without one. A job's receipt is looked
// up and claimed here, by one search in one table; the receipts themselves are partitioned by week, and an id doesn't tell
// its week. Only this file writes the keys.
import { plains } from '../columns.ts'
import { type Db, LostRace, type Store } from '../pool.ts'

export interface ReceiptDay {
  receiptId: string
  /** YYYY-MM-DD. The week of this day is the receipt's partition. */
  day: string
}

interface FoundDays {
  /** The days of the receipts that have a key. The receipts' rows may be gone. */
  days: ReceiptDay[]
  /** The ids that have no key, but may have a receipt: the keys aren't filled yet. */
  unknown: string[]
}

// A single id needs no array. PostgreSQL's planner must not see how long the array is; otherwise it would plan the
// statement anew each time.
const findText = (wanted: string) => `select wanted.id, key.day, fill.is_filled
from tokenmill.receipt_fill as fill cross join ${wanted}
left join lateral (select day from tokenmill.receipt_key where receipt_id = wanted.id limit 1) as key on true`
const FIND_ONE = findText('(select $1::uuid as id) as wanted')
const FIND_ALL = findText('unnest((select $1::uuid[])) as wanted(id)')

/** Looks up the days of these receipts, of which there must be at least one. */
export async function findDays(db: Db, receiptIds: readonly string[]): Promise<FoundDays> {
  const isOne = receiptIds.length === 1
  const { rows } = await db.query<{ id: string; day: string | null; is_filled: boolean }>({
    name: isOne ? 'receipt-key-find' : 'receipt-keys-find',
    text: isOne ? FIND_ONE : FIND_ALL,
    values: [isOne ? receiptIds[0] : plains(receiptIds)],
  })
  return {
    days: rows.flatMap(({ id, day }) => (day === null ? [] : { receiptId: id, day })),
    unknown: rows.flatMap(({ id, day, is_filled }) => (day === null && !is_filled ? id : [])),
  }
}

/**
 * SQL that claims the ids of `source` for receipts of today, in its order, and returns `receipt_id` and `revision` of
 * those that had no receipt. The transaction holds the receipts' locks.
 */
export function claimOf(source: string): string {
  return `insert into tokenmill.receipt_key as k (receipt_id, day, revision)
  select given.receipt_id, current_date, 1 from ${source}
  on conflict (receipt_id) do update set day = excluded.day, revision = k.revision + 1, answered_on = null where k.day is null
  returning k.receipt_id, k.revision`
}

/** Removes those of these keys whose receipts are gone. Returns how many. */
export async function removeLeft(db: Db, receiptIds: readonly string[]): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.receipt_key as k using unnest($1::uuid[]) as v(id)
where k.receipt_id = v.id and k.day is not null
and not exists (select from tokenmill.receipt as r where r.receipt_id = k.receipt_id and r.day = k.day)`,
    values: [plains(receiptIds)],
  })
  return count
}

/**
 * Counts an answer to a job that has no receipt. Returns its revision. The transaction holds the receipt's lock, and
 * has found no receipt.
 */
export async function countAnswer(db: Db, receiptId: string): Promise<number> {
  const { rows } = await db.query<{ revision: number; is_filled: boolean }>({
    name: 'receipt-key-count-answer',
    text: `insert into tokenmill.receipt_key as k (receipt_id, revision, answered_on) values ($1, 1, current_date)
on conflict (receipt_id) do update set day = null, revision = k.revision + 1, answered_on = excluded.answered_on
returning revision, (select is_filled from tokenmill.receipt_fill) as is_filled`,
    values: [receiptId],
  })
  const [row] = rows
  return row?.is_filled ? row.revision : countAbove(db, receiptId)
}

/** Raises the revision above those in the outbox: while the keys aren't filled, some earlier answers are only there. */
async function countAbove(db: Db, receiptId: string): Promise<number> {
  const { rows } = await db.query<{ revision: number }>({
    text: `update tokenmill.receipt_key set
  revision = greatest(revision, (select max(o.revision) + 1 from tokenmill.outbox as o where o.receipt_id = $1))
where receipt_id = $1 returning revision`,
    values: [receiptId],
  })
  return rows[0]?.revision ?? 1
}

/** Removes up to `limit` keys of jobs that had no receipt, and whose last answer was before `before` (ms). */
export async function eraseAnswers(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    // A row that a claim has locked is left out: it is about to be the key of a receipt.
    text: `delete from tokenmill.receipt_key where day is null and answered_on < $1 and receipt_id in (
  select receipt_id from tokenmill.receipt_key where day is null and answered_on < $1
  order by answered_on limit $2 for update skip locked
)`,
    values: [new Date(before), limit],
  })
  return count
}

/** The lowest UUID, before every id. */
const LOWEST = '00000000-0000-0000-0000-000000000000'

/**
 * Removes the keys of one week's receipts, whose partition is dropped next. After a crash in between, receipts without
 * keys are left for the next run; look-ups by id no longer find them. `page`: the number of keys that one statement
 * removes.
 */
export async function eraseWeek(db: Db, monday: string, page = 5_000): Promise<void> {
  for (let after: string | undefined = LOWEST; after !== undefined; ) {
    const { rows }: { rows: { last: string }[] } = await db.query<{ last: string }>({
      text: `with page as (
  select receipt_id, day from tokenmill.receipt
  where day >= $1::date and day < $1::date + 7 and receipt_id > $2 order by receipt_id limit $3
), erased as (
  delete from tokenmill.receipt_key as k using page where k.receipt_id = page.receipt_id and k.day = page.day
)
select receipt_id as last from page order by receipt_id desc limit 1`,
      values: [monday, after, page],
    })
    after = rows[0]?.last
  }
}

interface Fill {
  is_filled: boolean
  is_over: boolean
  week: string
  filled_to: string
  answered_to: number
}

interface Filled {
  isFilled: boolean
  /** How many receipts, or rows of the outbox, the page held. */
  rows: number
}

/**
 * Writes the keys of receipts and answers of releases that had none, page after page. If it is broken off, the next
 * call continues. Several may run at once; each waits for the other's page. Jobs may be worked meanwhile. `page`: the
 * number of rows in one transaction. `fills` is called before each page with the number of rows that this call has
 * read.
 */
export async function fill(
  store: Store,
  { page = 5_000, fills }: { page?: number; fills?: (rows: number) => void } = {},
): Promise<void> {
  let rows = 0
  for (let isFilled = await isAllFilled(store); !isFilled; ) {
    fills?.(rows)
    const filled = await store
      .transaction(db => fillPage(db, page))
      .catch(error => {
        if (error instanceof LostRace) return { isFilled: false, rows: 0 }
        throw error
      })
    isFilled = filled.isFilled
    rows += filled.rows
  }
}

async function isAllFilled(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ is_filled: boolean }>({ text: 'select is_filled from tokenmill.receipt_fill' })
  return rows[0]?.is_filled ?? true
}

async function fillPage(db: Db, page: number): Promise<Filled> {
  const { rows } = await db.query<Fill>({
    text: `select is_filled, week > current_date as is_over, week, filled_to, answered_to from tokenmill.receipt_fill for update`,
  })
  const [at] = rows
  if (!at || at.is_filled) return { isFilled: true, rows: 0 }
  return at.is_over ? fillAnswers(db, at, page) : fillReceipts(db, at, page)
}

async function fillReceipts(db: Db, { week, filled_to }: Fill, page: number): Promise<Filled> {
  const { rows } = await db.query<{ last: string; rows: number }>({
    text: `with page as (
  select receipt_id, day, revision from tokenmill.receipt
  where day >= $1::date and day < $1::date + 7 and receipt_id > $2 order by receipt_id limit $3
), written as (
  insert into tokenmill.receipt_key as k (receipt_id, day, revision) select receipt_id, day, revision from page
  -- A receipt that was answered anew before its page has the key of an answer.
  on conflict (receipt_id) do update set day = excluded.day, revision = greatest(k.revision, excluded.revision), answered_on = null
  where k.day is null
)
select receipt_id as last, (select count(*) from page) as rows from page order by receipt_id desc limit 1`,
    values: [week, filled_to, page],
  })
  await db.query({
    text: `update tokenmill.receipt_fill set week = $1::date + $2::int, filled_to = $3`,
    values: [week, rows[0] ? 0 : 7, rows[0]?.last ?? LOWEST],
  })
  return { isFilled: false, rows: rows[0]?.rows ?? 0 }
}

/** Answers to jobs that left no receipt: the job's next answer gets a higher revision. */
async function fillAnswers(db: Db, { answered_to }: Fill, page: number): Promise<Filled> {
  const { rows } = await db.query<{ read: number; last: number | null }>({
    text: `with page as (
  select outbox_id, receipt_id, day, revision, body is not null and result_id is distinct from receipt_id as is_answer
  from tokenmill.outbox where outbox_id > $1 order by outbox_id limit $2
), written as (
  insert into tokenmill.receipt_key as k (receipt_id, revision, answered_on)
  select receipt_id, max(revision), max(day) from page where is_answer and revision > 0 group by receipt_id order by receipt_id
  on conflict (receipt_id) do update set revision = excluded.revision, answered_on = excluded.answered_on
  where k.day is null and k.revision < excluded.revision
)
select count(*) as read, max(outbox_id) as last from page`,
    values: [answered_to, page],
  })
  const { read = 0, last = null } = rows[0] ?? {}
  await db.query({
    text: `update tokenmill.receipt_fill set answered_to = coalesce($1, answered_to), is_filled = $2`,
    values: [last, read < page],
  })
  return { isFilled: read < page, rows: read }
}

/**
 * Once all keys are filled: drops the triggers that write keys for receipts of release 0.3, and makes one that refuses
 * receipts without a key. No receipt is written until the transaction has ended.
 */
export async function leaveOlder(db: Db): Promise<void> {
  await db.query({ text: 'select tokenmill.follow_receipts_no_more()' })
}
