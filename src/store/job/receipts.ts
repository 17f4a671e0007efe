// Receipts: the stored end of each job, once per job. They make a job take effect exactly once: the first transaction
// that locks and writes the receipt decides.

import { addresseeOf } from '../../job/catalogue.ts'
import { type Column, listOf, plains, rowSet } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import { outboxRowsOfReceipts } from './outbox.ts'
import {
  ADDRESSEE,
  COLUMNS,
  NEW_COLUMNS,
  NEW_NAMES,
  type Receipt,
  type Row,
  reasonsText,
  receiptOf,
} from './receipt-row.ts'

export type { Receipt } from './receipt-row.ts'

// With `= any(…)` PostgreSQL could keep a plan that it made while the table was empty, which becomes slow as the table
// grows.
const FIND = `select ${COLUMNS} from unnest($1::uuid[]) as wanted(id)
cross join lateral (select ${COLUMNS} from tokenmill.receipt where receipt_id = wanted.id limit 1) as found`

/** The receipts of these ids; missing ones are left out. */
export async function findAll(db: Db, receiptIds: readonly string[]): Promise<Receipt[]> {
  const { rows } = await db.query<Row>({ name: 'receipts-find', text: FIND, values: [plains(receiptIds)] })
  return rows.map(receiptOf)
}

export async function find(db: Db, receiptId: string): Promise<Receipt | undefined> {
  return (await findAll(db, [receiptId]))[0]
}

// One statement that inserts the receipts, their revisions (above those of faults that were answered before) and their
// outbox rows. The transaction holds the receipts' locks, so no other transaction can insert one after "not exists" was
// checked, in whatever partition.
const insertText = (source: string, next: string, isNew: string) => `with given as (
  select v.*, ${next} as next
  from ${source}
), written as (
  insert into tokenmill.receipt (day, revision, ${NEW_NAMES})
  select current_date, next, ${NEW_NAMES} from given
  where ${isNew}
  returning receipt_id, revision
)
${outboxRowsOfReceipts({
  clientId: 'given.addressee',
  replyTo: 'given.reply_to',
  receiptId: 'given.receipt_id',
  written: 'written join given on given.receipt_id = written.receipt_id',
})}`
const nextOf = (id: string) =>
  `(select coalesce(max(o.revision), 0) + 1 from tokenmill.outbox as o where o.receipt_id = ${id})`
const isNewIn = (id: string) => `not exists (select from tokenmill.receipt as r where r.receipt_id = ${id})`

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
  const { shape, source, values } = rowSet([...NEW_COLUMNS, ADDRESSEE], receipts)
  const text = insertText(source, nextOf('v.receipt_id'), isNewIn('given.receipt_id'))
  return insert(db, receipts, { name: `receipts-insert-${shape}`, text, values })
}

const REVISION: Column<Receipt> = { name: 'own_revision', type: 'integer', text: r => r.revision, plain: true }

/**
 * As `insertAll`, for receipts that `findClaimable` found to be new in this transaction; each has the revision that it
 * found.
 */
export async function insertClaimed(db: Db, receipts: readonly Receipt[]): Promise<Written[]> {
  const { shape, source, values } = rowSet([...NEW_COLUMNS, ADDRESSEE, REVISION], receipts)
  const text = insertText(source, 'v.own_revision', 'true')
  return insert(db, receipts, { name: `receipts-insert-claimed-${shape}`, text, values })
}

async function insert(
  db: Db,
  receipts: readonly Receipt[],
  statement: { name: string; text: string; values: unknown[] },
): Promise<Written[]> {
  if (receipts.length === 0) return []
  const { rows } = await db.query<WrittenRow>(statement)
  const written = new Map(rows.map(row => [row.receipt_id, row]))
  return receipts.map(({ receiptId }) => writtenOf(written.get(receiptId)))
}

/**
 * The revisions that the receipts of these jobs get; jobs that have a receipt are left out. The caller holds the
 * receipts' locks, so the answer stays right until the end of the transaction.
 */
export async function findClaimable(db: Db, receiptIds: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; next: number }>({
    name: 'receipts-claimable',
    text: `select wanted.id, ${nextOf('wanted.id')} as next
from unnest(${listOf(1, 'uuid')}) as wanted(id) where ${isNewIn('wanted.id')}`,
    values: [plains(receiptIds)],
  })
  return new Map(rows.map(({ id, next }) => [id, next]))
}

interface WrittenRow {
  receipt_id: string
  revision: number
  outbox_id: number
}

function writtenOf(row: WrittenRow | undefined): Written {
  if (row === undefined) throw new LostRace('the receipt was written meanwhile')
  return { revision: row.revision, outboxId: row.outbox_id }
}

const REVISE = `with revised as (
  update tokenmill.receipt set status = $2, code = $3, counts = $4::jsonb, outcomes = $5, failed_records = $6, attempt = $7,
    completed_at = $8, envelope_digest = $9, reversal = $13, reasons = $14::jsonb,
    revision = greatest(revision, (select max(o.revision) from tokenmill.outbox as o where o.receipt_id = $1)) + 1
  where receipt_id = $1 and revision = $10 returning revision
)
${outboxRowsOfReceipts({ clientId: '$12', replyTo: '$11', receiptId: '$1', written: 'revised' })}`

/** Writes a new outcome into a receipt: one revision higher, with another outbox row. */
export async function revise(db: Db, receipt: Receipt): Promise<Written> {
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
  ]
  const { rows } = await db.query<WrittenRow>({ text: REVISE, values })
  return writtenOf(rows[0])
}

/**
 * Makes the effect belong to the envelope of the repeat, so that only the last sender can have it reversed. The caller
 * holds the receipt's lock. False if the receipt has changed since it was read.
 */
export async function handOn(
  db: Db,
  { receiptId, envelopeDigest }: Receipt,
  repeat: { envelopeDigest: Buffer; acceptedAt: number },
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.receipt set envelope_digest = $3, accepted_at = $4
where receipt_id = $1 and envelope_digest = $2 and status = 'SUCCEEDED' and reversal is null`,
    values: [receiptId, envelopeDigest, repeat.envelopeDigest, new Date(repeat.acceptedAt)],
  })
  return count === 1
}

/**
 * Writes a receipt without an outcome for a job that hasn't begun, so that it never will. The job's kind isn't known;
 * `receipt` names who cancelled it. Nothing is published now: the job is answered from this receipt when a worker takes
 * it.
 */
export async function insertCancelled(db: Db, receipt: Receipt): Promise<void> {
  const { count } = await db.query({
    text: `insert into tokenmill.receipt (day, revision, receipt_id, client_id, iss, kind, jti, request_digest, envelope_digest,
  status, code, failed_records, attempt, accepted_at, completed_at, reversal)
select current_date, 1, $1, $2, $3, $4, $5, $6, $7, 'CANCELLED', $8, 0, $9, $10, $11, $12
where not exists (select from tokenmill.receipt where receipt_id = $1)`,
    values: [
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
    ],
  })
  if (count !== 1) throw new LostRace('the receipt was written meanwhile')
}

/** Records that the provider calls of a cancelled job have been compensated. */
export async function recordCancelledCompensation(db: Db, receiptId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.receipt set reversal = 'COMPLETED' where receipt_id = $1 and reversal = 'REQUIRED'`,
    values: [receiptId],
  })
}
