// The rows of receipts: how a receipt is read from its columns and written to them. receipts.ts has the statements.
import type { FieldReason } from '../../errors.ts'
import type { Askers } from '../../job/answer/askers.ts'
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import type { Counts } from '../../job/outcome.ts'
import { addresseeOf } from '../../job/system-clients.ts'
import type { Column } from '../columns.ts'

export interface Receipt {
  receiptId: string
  /** Of the verified envelope; null of a job that was cancelled unseen. */
  entityId: string | null
  clientId: string
  iss: string
  kind: string
  jti: string
  requestDigest: Buffer
  /** The version of the data key `digest`. */
  digestVersion: number
  /** The keyed hash of what the request says, under the same version; null if it has no card, or the card wasn't opened. */
  contentDigest?: Buffer | null
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
  /** For a chunk: how many of its records ended with each reason; null for a single job. */
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

/** A receipt that was read. The week of `day` (YYYY-MM-DD) is its partition. */
export interface StoredReceipt extends Receipt {
  day: string
  /** Who asked for the effect; null while only the envelope that took effect has. */
  askers: Askers | null
}

export const COLUMNS = `
  receipt_id as "receiptId",
  day,
  entity_id as "entityId",
  client_id as "clientId",
  iss,
  kind,
  jti,
  request_digest as "requestDigest",
  digest_version as "digestVersion",
  envelope_digest as "envelopeDigest",
  reply_to as "replyTo",
  reference,
  status,
  code,
  outcome,
  refusal,
  token_id as "tokenId",
  batch_no as "batchNo",
  chunk,
  counts,
  reasons,
  outcomes,
  failed_records as "failedRecords",
  revision,
  reversal,
  attempt,
  accepted_at as "acceptedAt",
  completed_at as "completedAt",
  askers,
  content_digest as "contentDigest"`

const column = (name: string, type: string, text: Column<Receipt>['text'], plain = false): Column<Receipt> => ({
  name,
  type,
  text,
  plain,
})
const binary = (value: Buffer) => `\\x${value.toString('hex')}`
const moment = (ms: number) => new Date(ms).toISOString()
const json = (value: unknown) => (value === null ? null : JSON.stringify(value))

/** Null if no record has a reason. */
export function reasonsText({ reasons }: Receipt): string | null {
  return reasons === null || Object.keys(reasons).length === 0 ? null : JSON.stringify(reasons)
}

export const NEW_COLUMNS: readonly Column<Receipt>[] = [
  column('receipt_id', 'uuid', r => r.receiptId, true),
  column('entity_id', 'uuid', r => r.entityId, true),
  column('client_id', 'text', r => r.clientId),
  column('iss', 'text', r => r.iss),
  column('kind', 'text', r => r.kind),
  column('jti', 'text', r => r.jti),
  column('request_digest', 'bytea', r => binary(r.requestDigest)),
  column('digest_version', 'smallint', r => r.digestVersion, true),
  column('content_digest', 'bytea', r => (r.contentDigest ? binary(r.contentDigest) : null)),
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
/** The client to whose results queue the outbox row goes. It isn't a column of the receipt. */
export const ADDRESSEE = column('addressee', 'text', r => addresseeOf(r))
export const NEW_NAMES = NEW_COLUMNS.map(({ name }) => name).join(', ')
