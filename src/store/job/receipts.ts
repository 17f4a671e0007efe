// Receipts: the stored end of each job, once per job. They make a job take effect exactly once: the first transaction
// that locks and writes the receipt decides.

import { addresseeOf, type Kind } from '../../job/catalogue.ts'
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import type { Counts } from '../../job/outcome.ts'
import type { FieldReason } from '../../job/problem.ts'
import { type Column, plains, rowSet } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import { outboxRowsOfReceipts } from './outbox.ts'

export interface Receipt {
  receiptId: string
  clientId: string
  iss: string
  kind: Kind
  jti: string
  requestDigest: Buffer
  /** The version of the data key `digest`. */
  digestVersion: number
  envelopeDigest: Buffer
  replyTo: string | null
  reference: string | null
  status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
  code: number
  /** The outcome of a single record. */
  outcome: string | null
  refusal: FieldReason[] | null
  tokenId: string | null
  batchNo: number | null
  chunk: number | null
  counts: Counts | null
  /** For a chunk: how many of its records ended with each reason; null if an older release wrote the receipt. */
  reasons: ReasonCounts | null
  /** A chunk's outcomes, packed (src/job/chunk-outcomes.ts reads and writes them). */
  outcomes: string | null
  failedRecords: number
  revision: number
  /** Whether failed calls to providers must be compensated, or were; null if there are none. */
  reversal: 'REQUIRED' | 'COMPLETED' | null
  attempt: number
  /** ms since the epoch. */
  acceptedAt: number
  completedAt: number
}

const COLUMNS = `receipt_id, client_id, iss, kind, jti, request_digest, digest_version, envelope_digest, reply_to, reference, status, code,
outcome, refusal, token_id, batch_no, chunk, counts, reasons, outcomes, failed_records, revision, reversal, attempt, accepted_at,
completed_at`

interface Row {
  receipt_id: string
  client_id: string
  iss: string
  kind: Kind
  jti: string
  request_digest: Buffer
  digest_version: number
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
  reasons: ReasonCounts | null
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
    digestVersion: row.digest_version,
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
    reasons: row.reasons,
    outcomes: row.outcomes,
    failedRecords: row.failed_records,
    revision: row.revision,
    reversal: row.reversal,
    attempt: row.attempt,
    acceptedAt: row.accepted_at,
    completedAt: row.completed_at,
  }
}

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

const column = (name: string, type: string, text: Column<Receipt>['text'], plain = false): Column<Receipt> => ({
  ...{ name, type, text, plain },
})
const binary = (value: Buffer) => `\\x${value.toString('hex')}`
const moment = (ms: number) => new Date(ms).toISOString()
const json = (value: unknown) => (value === null ? null : JSON.stringify(value))

/** Null if no record has a reason. */
function reasonsText({ reasons }: Receipt): string | null {
  return reasons === null || Object.keys(reasons).length === 0 ? null : JSON.stringify(reasons)
}

const NEW_COLUMNS: readonly Column<Receipt>[] = [
  column('receipt_id', 'uuid', r => r.receiptId, true),
  column('client_id', 'text', r => r.clientId),
  column('iss', 'text', r => r.iss),
  column('kind', 'text', r => r.kind),
  column('jti', 'text', r => r.jti),
  column('request_digest', 'bytea', r => binary(r.requestDigest)),
  column('digest_version', 'smallint', r => r.digestVersion, true),
  column('envelope_digest', 'bytea', r => binary(r.envelopeDigest)),
  column('reply_to', 'text', r => r.replyTo),
  column('reference', 'text', r => r.reference),
  column('status', 'text', r => r.status),
  column('code', 'smallint', r => r.code, true),
  column('outcome', 'text', r => r.outcome),
  column('refusal', 'jsonb', r => json(r.refusal)),
  column('token_id', 'uuid', r => r.tokenId, true),
  column('batch_no', 'bigint', r => r.batchNo, true),
  column('chunk', 'integer', r => r.chunk, true),
  column('counts', 'jsonb', r => json(r.counts)),
  column('reasons', 'jsonb', r => reasonsText(r)),
  column('outcomes', 'text', r => r.outcomes),
  column('failed_records', 'integer', r => r.failedRecords, true),
  column('reversal', 'text', r => r.reversal),
  column('attempt', 'integer', r => r.attempt, true),
  column('accepted_at', 'timestamptz', r => moment(r.acceptedAt)),
  column('completed_at', 'timestamptz', r => moment(r.completedAt)),
]
/** Not a column of the receipt: the client to whose results queue the outbox row goes. */
const ADDRESSEE = column('addressee', 'text', r => addresseeOf(r))
const NEW_NAMES = NEW_COLUMNS.map(({ name }) => name).join(', ')

// One statement that inserts the receipts, their revisions (above those of faults that were answered before) and their
// outbox rows. The transaction holds the receipts' locks, so no other transaction can insert one after "not exists" was
// checked, in whatever partition.
const insertText = (source: string) => `with given as (
  select v.*, (select coalesce(max(o.revision), 0) + 1 from tokenmill.outbox as o where o.receipt_id = v.receipt_id) as next
  from ${source}
), written as (
  insert into tokenmill.receipt (day, revision, ${NEW_NAMES})
  select current_date, next, ${NEW_NAMES} from given
  where not exists (select from tokenmill.receipt as r where r.receipt_id = given.receipt_id)
  returning receipt_id, revision
)
${outboxRowsOfReceipts({
  clientId: 'given.addressee',
  replyTo: 'given.reply_to',
  receiptId: 'given.receipt_id',
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
  if (receipts.length === 0) return []
  const { shape, source, values } = rowSet([...NEW_COLUMNS, ADDRESSEE], receipts)
  const name = `receipts-insert-${shape}`
  const { rows } = await db.query<WrittenRow>({ name, text: insertText(source), values })
  const written = new Map(rows.map(row => [row.receipt_id, row]))
  return receipts.map(({ receiptId }) => writtenOf(written.get(receiptId)))
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
