// Receipts: the stored end of each job, once. They make jobs take effect exactly once: the transaction that holds the
// lock and writes the receipt first decides.

import { addresseeOf, type Kind } from '../../job/catalogue.ts'
import type { Counts } from '../../job/outcome.ts'
import type { FieldReason } from '../../job/problem.ts'
import { type Db, LostRace } from '../pool.ts'
import { tellReceipt } from './outbox.ts'

export interface Receipt {
  receiptId: string
  clientId: string
  iss: string
  kind: Kind
  jti: string
  requestDigest: Buffer
  envelopeDigest: Buffer
  replyTo: string | null
  reference: string | null
  status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
  code: number
  /** How a single record ended. */
  outcome: string | null
  refusal: FieldReason[] | null
  tokenId: string | null
  batchNo: number | null
  chunk: number | null
  counts: Counts | null
  /** A chunk's outcomes, packed (src/job/chunk-outcomes.ts reads and writes them). */
  outcomes: string | null
  failedRecords: number
  revision: number
  /** Whether calls to providers that were in vain are compensated; null where there were none. */
  reversal: 'REQUIRED' | 'COMPLETED' | null
  attempt: number
  /** ms since the epoch. */
  acceptedAt: number
  completedAt: number
}

const COLUMNS = `receipt_id, client_id, iss, kind, jti, request_digest, envelope_digest, reply_to, reference, status, code,
outcome, refusal, token_id, batch_no, chunk, counts, outcomes, failed_records, revision, reversal, attempt, accepted_at, completed_at`

interface Row {
  receipt_id: string
  client_id: string
  iss: string
  kind: Kind
  jti: string
  request_digest: Buffer
  envelope_digest: Buffer
  reply_to: string | null
  reference: string | null
  status: Receipt['status']
  code: number
  outcome: string | null
  refusal: FieldReason[] | null
  token_id: string | null
  batch_no: number | null
  chunk: number | null
  counts: Counts | null
  outcomes: string | null
  failed_records: number
  revision: number
  reversal: Receipt['reversal']
  attempt: number
  accepted_at: number
  completed_at: number
}

function receiptOf(row: Row): Receipt {
  return {
    receiptId: row.receipt_id,
    clientId: row.client_id,
    iss: row.iss,
    kind: row.kind,
    jti: row.jti,
    requestDigest: row.request_digest,
    envelopeDigest: row.envelope_digest,
    replyTo: row.reply_to,
    reference: row.reference,
    status: row.status,
    code: row.code,
    outcome: row.outcome,
    refusal: row.refusal,
    tokenId: row.token_id,
    batchNo: row.batch_no,
    chunk: row.chunk,
    counts: row.counts,
    outcomes: row.outcomes,
    failedRecords: row.failed_records,
    revision: row.revision,
    reversal: row.reversal,
    attempt: row.attempt,
    acceptedAt: row.accepted_at,
    completedAt: row.completed_at,
  }
}

export async function find(db: Db, receiptId: string): Promise<Receipt | undefined> {
  const { rows } = await db.query<Row>({
    name: 'receipt-find',
    text: `select ${COLUMNS} from tokenmill.receipt where receipt_id = $1 limit 1`,
    values: [receiptId],
  })
  const row = rows[0]
  return row && receiptOf(row)
}

const valuesOf = (receipt: Receipt) => [
  receipt.receiptId,
  receipt.clientId,
  receipt.iss,
  receipt.kind,
  receipt.jti,
  receipt.requestDigest,
  receipt.envelopeDigest,
  receipt.replyTo,
  receipt.reference,
  receipt.status,
  receipt.code,
  receipt.outcome,
  receipt.refusal && JSON.stringify(receipt.refusal),
  receipt.tokenId,
  receipt.batchNo,
  receipt.chunk,
  receipt.counts && JSON.stringify(receipt.counts),
  receipt.outcomes,
  receipt.failedRecords,
  receipt.attempt,
  new Date(receipt.acceptedAt),
  new Date(receipt.completedAt),
  addresseeOf(receipt),
  receipt.reversal,
]

// The receipt, its revision (above that of any fault told before) and the outbox row that will tell it, in one go.
// The transaction holds the receipt's lock, so "not exists" can't be overtaken, whatever partition the other is in.
const INSERT = `with told as (
  select coalesce(max(revision), 0) + 1 as revision from tokenmill.outbox where receipt_id = $1
), written as (
  insert into tokenmill.receipt (day, revision, receipt_id, client_id, iss, kind, jti, request_digest, envelope_digest, reply_to,
    reference, status, code, outcome, refusal, token_id, batch_no, chunk, counts, outcomes, failed_records, attempt, accepted_at,
    completed_at, reversal)
  select current_date, told.revision, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb, $14, $15, $16, $17::jsonb, $18, $19,
    $20, $21, $22, $24 from told
  where not exists (select from tokenmill.receipt where receipt_id = $1)
  returning revision
)
${tellReceipt({ clientId: '$23', replyTo: '$8', receiptId: '$1', written: 'written' })}`

/** A receipt that was just written, and the outbox row that will tell it. */
interface Written {
  revision: number
  outboxId: number
}

/** Writes the receipt and its outbox row; LostRace if there is a receipt already. */
export async function insert(db: Db, receipt: Receipt): Promise<Written> {
  return writtenOf(await db.query<WrittenRow>({ name: 'receipt-insert', text: INSERT, values: valuesOf(receipt) }))
}

interface WrittenRow {
  revision: number
  outbox_id: number
}

function writtenOf({ rows }: { rows: WrittenRow[] }): Written {
  const row = rows[0]
  if (row === undefined) throw new LostRace('the receipt was written meanwhile')
  return { revision: row.revision, outboxId: row.outbox_id }
}

const REVISE = `with revised as (
  update tokenmill.receipt set status = $2, code = $3, counts = $4::jsonb, outcomes = $5, failed_records = $6, attempt = $7,
    completed_at = $8, envelope_digest = $9, reversal = $13,
    revision = greatest(revision, (select max(o.revision) from tokenmill.outbox as o where o.receipt_id = $1)) + 1
  where receipt_id = $1 and revision = $10 returning revision
)
${tellReceipt({ clientId: '$12', replyTo: '$11', receiptId: '$1', written: 'revised' })}`

/** A receipt with another outcome: one revision higher, with its outbox row. */
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
  ]
  return writtenOf(await db.query<WrittenRow>({ text: REVISE, values }))
}

/**
 * From now on the effect belongs to the envelope of the repeat, so that only the last sender can have it reversed. Runs
 * under the receipt's lock; false where the receipt has changed since it was read.
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
 * Takes the place of a job that hasn't been started, so that it never will be: a receipt without an outcome. The job's
 * kind isn't known; `receipt` names who cancelled it. Nothing is published now: the job gets this answer when it comes.
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

/** Records that the calls of a cancelled job to providers are compensated. */
export async function recordCancelledCompensation(db: Db, receiptId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.receipt set reversal = 'COMPLETED' where receipt_id = $1 and reversal = 'REQUIRED'`,
    values: [receiptId],
  })
}
