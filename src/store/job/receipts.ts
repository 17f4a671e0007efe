// Receipts: the stored end of each job, once per job. They make a job take effect exactly once: the first transaction
// that claims the receipt's id and writes the receipt decides. receipt-keys.ts says in which week a receipt is.

import type { Askers } from '../../job/answer/askers.ts'
import { addresseeOf } from '../../job/system-clients.ts'
import { plains, rowSet } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import { outboxRowsOfReceipts } from './outbox.ts'
import * as receiptKeys from './receipt-keys.ts'
import {
  ADDRESSEE,
  COLUMNS,
  NEW_COLUMNS,
  NEW_NAMES,
  type Receipt,
  reasonsText,
  type StoredReceipt,
} from './receipt-row.ts'

export type { Receipt, StoredReceipt } from './receipt-row.ts'

// The day is hidden from the planner: if it saw the day, a plan for one week would look cheaper than a general one, and
// PostgreSQL would plan each time.
const FIND_ONE = `select ${COLUMNS}
from tokenmill.receipt
where receipt_id = $1 and day = (select $2::date)`
// With `= any(…)` PostgreSQL could keep a plan that it made while the table was empty, which becomes slow as the table
// grows.
const FIND = `select found.*
from unnest($1::uuid[], $2::date[]) as wanted(id, on_day)
cross join lateral (
  select ${COLUMNS}
  from tokenmill.receipt
  where receipt_id = wanted.id and day = wanted.on_day
  limit 1
) as found`

/**
 * The receipts of these ids; missing ones are left out. One statement is enough if no id has a key; a second one reads
 * the receipts of the keys.
 */
export async function findAll(db: Db, receiptIds: readonly string[]): Promise<StoredReceipt[]> {
  if (receiptIds.length === 0) return []
  const days = await receiptKeys.findDays(db, receiptIds)
  return days.length === 0 ? [] : await readAll(db, days)
}

export async function find(db: Db, receiptId: string): Promise<StoredReceipt | undefined> {
  return (await findAll(db, [receiptId]))[0]
}

/** Reads the receipts of these keys. A key whose receipt retention has dropped gives none. */
async function readAll(db: Db, days: readonly receiptKeys.ReceiptDay[]): Promise<StoredReceipt[]> {
  const [first] = days
  const { rows } = await db.query<StoredReceipt>(
    first && days.length === 1
      ? { name: 'receipts-find-one', text: FIND_ONE, values: [first.receiptId, first.day] }
      : {
          name: 'receipts-find',
          text: FIND,
          values: [plains(days.map(({ receiptId }) => receiptId)), plains(days.map(({ day }) => day))],
        },
  )
  return rows
}

// One statement that claims the ids and inserts the receipts, with their revisions (above those of faults that were
// answered before) and their outbox rows.
const insertText = (source: string) => `with given as (
  select v.*
  from ${source}
), claimed as (
  ${receiptKeys.claimOf('given')}
), written as (
  insert into tokenmill.receipt (day, revision, ${NEW_NAMES})
  select current_date, claimed.revision, ${NEW_NAMES.replace('receipt_id', 'given.receipt_id')}
  from claimed
  join given on given.receipt_id = claimed.receipt_id
  returning receipt_id, revision
)
${outboxRowsOfReceipts({
  clientId: 'given.addressee',
  replyTo: 'given.reply_to',
  receiptId: 'given.receipt_id',
  envelope: 'given.envelope_digest',
  written: 'written join given on given.receipt_id = written.receipt_id',
})}`

/** A receipt that was just written, and its outbox row. */
export interface Written {
  revision: number
  outboxId: number
}

/**
 * Writes receipts of different jobs, and their outbox rows, in this order. Throws LostRace if one of the receipts
 * exists already.
 */
export async function insertAll(db: Db, receipts: readonly Receipt[]): Promise<Written[]> {
  const written = await insertUnclaimed(db, receipts)
  return receipts.map(({ receiptId }) => present(written.get(receiptId)))
}

/**
 * Writes receipts of different jobs, and their outbox rows. Returns what was written, by receipt id: receipts that exist
 * already are left out.
 */
export async function insertUnclaimed(db: Db, receipts: readonly Receipt[]): Promise<ReadonlyMap<string, Written>> {
  const written = await insertClaimed(db, receipts)
  const lost = receipts.filter(({ receiptId }) => !written.has(receiptId))
  const ids = lost.map(({ receiptId }) => receiptId)
  if (lost.length === 0 || (await receiptKeys.removeLeft(db, ids)) === 0) return written
  return new Map([...written, ...(await insertClaimed(db, lost))])
}

const WRITTEN = [...NEW_COLUMNS, ADDRESSEE]

/** In the order of the ids, so that two transactions with the same receipts wait without a deadlock. */
async function insertClaimed(db: Db, receipts: readonly Receipt[]): Promise<Map<string, Written>> {
  if (receipts.length === 0) return new Map()
  const sorted = receipts.toSorted((a, b) => (a.receiptId < b.receiptId ? -1 : 1))
  const { shape, source, values } = rowSet(WRITTEN, sorted)
  const name = `receipts-insert-${shape}`
  const { rows } = await db.query<Written & Pick<Receipt, 'receiptId'>>({ name, text: insertText(source), values })
  return new Map(rows.map(row => [row.receiptId, row]))
}

function present(written: Written | undefined): Written {
  if (written === undefined) throw new LostRace('the receipt was written meanwhile')
  return written
}

const REVISE = `with revised as (
  update tokenmill.receipt
  set
    status = $2,
    code = $3,
    counts = $4::jsonb,
    outcomes = $5,
    failed_records = $6,
    attempt = $7,
    completed_at = $8,
    envelope_digest = $9,
    reversal = $13,
    reasons = $14::jsonb,
    revision = revision + 1
  where receipt_id = $1 and day = $15 and revision = $10
  returning revision
)
${outboxRowsOfReceipts({ clientId: '$12', replyTo: '$11', receiptId: '$1', envelope: '$9', written: 'revised' })}`

/** Writes a new outcome into a receipt: one revision higher, with another outbox row. */
export async function revise(db: Db, receipt: Receipt & Pick<StoredReceipt, 'day'>): Promise<Written> {
  const values = [
    receipt.receiptId,
    receipt.status,
    receipt.code,
    receipt.counts && JSON.stringify(receipt.counts),
    receipt.outcomes,
    receipt.failedRecords,
    receipt.attempt,
    new Date(receipt.completedAt),
    receipt.envelopeDigest,
    receipt.revision,
    receipt.replyTo,
    addresseeOf(receipt),
    receipt.reversal,
    reasonsText(receipt),
    receipt.day,
  ]
  const { rows } = await db.query<Written>({ text: REVISE, values })
  return present(rows[0])
}

/**
 * Records who has asked for the effect, and who has given up. No answer changes, so the revision stays. The caller holds
 * the receipt's lock, and has read the receipt under it.
 */
export async function recordAskers(db: Db, { receiptId, day }: StoredReceipt, askers: Askers): Promise<void> {
  await db.query({
    text: `update tokenmill.receipt
set askers = $3::jsonb
where receipt_id = $1 and day = $2`,
    values: [receiptId, day, JSON.stringify(askers)],
  })
}

const INSERT_CANCELLED = `with claimed as (
  ${receiptKeys.claimOf('(select $1::uuid as receipt_id) as given')}
)
insert into tokenmill.receipt (
  day,
  revision,
  receipt_id,
  client_id,
  iss,
  kind,
  jti,
  request_digest,
  envelope_digest,
  status,
  code,
  failed_records,
  attempt,
  accepted_at,
  completed_at,
  reversal,
  entity_id
)
select
  current_date,
  revision,
  receipt_id,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  'CANCELLED',
  $8,
  0,
  $9,
  $10,
  $11,
  $12,
  $13
from claimed`

/**
 * Writes a receipt without an outcome for a job that hasn't begun, so that it never will. The job's kind isn't known;
 * `receipt` names who cancelled it. Nothing is published now: the job is answered from this receipt when a worker takes
 * it. Throws LostRace if there is a receipt.
 */
export async function insertCancelled(db: Db, receipt: Receipt): Promise<void> {
  const values = [
    receipt.receiptId,
    receipt.clientId,
    receipt.iss,
    receipt.kind,
    receipt.jti,
    receipt.requestDigest,
    receipt.envelopeDigest,
    receipt.code,
    receipt.attempt,
    new Date(receipt.acceptedAt),
    new Date(receipt.completedAt),
    receipt.reversal,
    receipt.entityId,
  ]
  const isWritten = async () => (await db.query({ text: INSERT_CANCELLED, values })).count === 1
  if (await isWritten()) return
  if ((await receiptKeys.removeLeft(db, [receipt.receiptId])) === 1 && (await isWritten())) return
  throw new LostRace('the receipt was written meanwhile')
}

/** Records that the provider calls of a cancelled job have been compensated. */
export async function recordCancelledCompensation(
  db: Db,
  { receiptId, day }: Pick<StoredReceipt, 'receiptId' | 'day'>,
): Promise<void> {
  await db.query({
    text: `update tokenmill.receipt
set reversal = 'COMPLETED'
where receipt_id = $1 and day = $2 and reversal = 'REQUIRED'`,
    values: [receiptId, day],
  })
}
