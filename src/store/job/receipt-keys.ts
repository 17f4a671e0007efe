// The keys of receipts: one row for each job that has a receipt, or was answered without one. A job's receipt is looked
// up and claimed here, by one search in one table; the receipts themselves are partitioned by week, and an id doesn't tell
// its week. Only this file writes the keys.
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface ReceiptDay {
  receiptId: string
  /** YYYY-MM-DD. The week of this day is the receipt's partition. */
  day: string
}

const FIND_ONE = `select receipt_id as "receiptId", day
from tokenmill.receipt_key
where receipt_id = $1 and day is not null`
// PostgreSQL's planner must not see how long the array is; otherwise it would plan the statement anew each time.
const FIND_ALL = `select k.receipt_id as "receiptId", k.day
from unnest((select $1::uuid[])) as wanted(id)
cross join lateral (select receipt_id, day from tokenmill.receipt_key where receipt_id = wanted.id and day is not null limit 1) as k`

/** The days of those of these receipts that have a key; their rows may be gone. There must be at least one id. */
export async function findDays(db: Db, receiptIds: readonly string[]): Promise<ReceiptDay[]> {
  const isOne = receiptIds.length === 1
  const { rows } = await db.query<ReceiptDay>({
    name: isOne ? 'receipt-key-find' : 'receipt-keys-find',
    text: isOne ? FIND_ONE : FIND_ALL,
    values: [isOne ? receiptIds[0] : plains(receiptIds)],
  })
  return rows
}

/**
 * SQL that claims the ids of `source` for receipts of today, in its order, and returns `receipt_id` and `revision` of
 * those that had no receipt. The transaction holds the receipts' locks.
 */
export function claimOf(source: string): string {
  return `insert into tokenmill.receipt_key as k (receipt_id, day, revision)
  select given.receipt_id, now()::date, 1
  from ${source}
  on conflict (receipt_id) do update
  set day = excluded.day, revision = k.revision + 1, answered_on = null
  where k.day is null
  returning k.receipt_id, k.revision`
}

/** Removes those of these keys whose receipts are gone. Returns how many. */
export async function removeLeft(db: Db, receiptIds: readonly string[]): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.receipt_key as k
using unnest($1::uuid[]) as v(id)
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
  const { rows } = await db.query<{ revision: number }>({
    name: 'receipt-key-count-answer',
    text: `insert into tokenmill.receipt_key as k (receipt_id, revision, answered_on)
values ($1, 1, now()::date)
on conflict (receipt_id) do update
set day = null, revision = k.revision + 1, answered_on = excluded.answered_on
returning revision`,
    values: [receiptId],
  })
  return rows[0]?.revision ?? 1
}

/** Removes up to `limit` keys of jobs that had no receipt, and whose last answer was before `before` (ms). */
export async function eraseAnswers(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    // A row that a claim has locked is left out: it is about to be the key of a receipt.
    text: `delete from tokenmill.receipt_key
where day is null and answered_on < $1 and receipt_id in (
  select receipt_id
  from tokenmill.receipt_key
  where day is null and answered_on < $1
  order by answered_on
  limit $2
  for update skip locked
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
  select receipt_id, day
  from tokenmill.receipt
  where day >= $1::date and day < $1::date + 7 and receipt_id > $2
  order by receipt_id
  limit $3
), erased as (
  delete from tokenmill.receipt_key as k
  using page
  where k.receipt_id = page.receipt_id and k.day = page.day
)
select receipt_id as last
from page
order by receipt_id desc
limit 1`,
      values: [monday, after, page],
    })
    after = rows[0]?.last
  }
}
