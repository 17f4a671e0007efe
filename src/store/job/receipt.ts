// A receipt, and what its code covers: every column that decides. `revision` counts answers, and `day` says where the row lies; the
// addressee follows from `iss` and `client_id`.
import { hash } from 'node:crypto'
import type { FieldReason } from '../../errors.ts'
import type { Askers } from '../../job/answer/askers.ts'
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import { canonical } from '../../job/envelope/digest.ts'
import type { Counts } from '../../job/outcome.ts'
import { type Coded, type Coder, isCoded } from '../codes.ts'

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

/**
 * A receipt that was read. The week of `day` (YYYY-MM-DD) is its partition. Whoever tells or counts it asks before whether it is
 * proved (`isProved`); one that isn't still blocks its job.
 */
export interface StoredReceipt extends Receipt, Coded {
  day: string
  /** Who asked for the effect; null while only the envelope that took effect has. */
  askers: Askers | null
}

type Deciding = Omit<Receipt, 'revision' | 'outcomes'> & Pick<StoredReceipt, 'askers'>

/** The same text for a receipt as it is written and as it is read. A chunk's outcomes are in it by their SHA-256. */
export function receiptText(receipt: Deciding & Pick<Receipt, 'outcomes'>): string {
  const { outcomes } = receipt
  return textOf(receipt, outcomes === null ? null : hash('sha256', outcomes))
}

function textOf(receipt: Deciding, outcomesDigest: string | null): string {
  const { reasons } = receipt
  return JSON.stringify([
    'receipt/1',
    receipt.receiptId.toLowerCase(),
    uuid(receipt.entityId),
    receipt.clientId,
    receipt.iss,
    receipt.kind,
    receipt.jti,
    receipt.requestDigest.toString('base64url'),
    receipt.digestVersion,
    receipt.contentDigest?.toString('base64url') ?? null,
    receipt.envelopeDigest.toString('base64url'),
    receipt.replyTo,
    receipt.reference,
    receipt.status,
    receipt.code,
    receipt.outcome,
    object(receipt.refusal),
    uuid(receipt.tokenId),
    receipt.batchNo,
    receipt.chunk,
    object(receipt.counts),
    // A receipt without reasons is stored with null.
    reasons && Object.keys(reasons).length > 0 ? canonical(reasons) : null,
    outcomesDigest,
    receipt.failedRecords,
    receipt.reversal,
    receipt.attempt,
    moment(receipt.acceptedAt),
    moment(receipt.completedAt),
    object(receipt.askers),
  ])
}

/** Whether tokenmill wrote the receipt as it is. Throws `Fault('key_unavailable')` for a key that this process doesn't have yet. */
export function isProved(coder: Pick<Coder, 'receiptMacBy'>, receipt: StoredReceipt): boolean {
  return isCoded(coder, receiptText(receipt), receipt)
}

/** The same for a receipt that was read without a chunk's outcomes. `outcomesDigest`: their SHA-256, in hexadecimal. */
export function isProvedByDigest(
  coder: Pick<Coder, 'receiptMacBy'>,
  receipt: Omit<StoredReceipt, 'outcomes'>,
  outcomesDigest: string | null,
): boolean {
  return isCoded(coder, textOf(receipt, outcomesDigest), receipt)
}

const uuid = (id: string | null) => id?.toLowerCase() ?? null
/** PostgreSQL doesn't keep the order of the members. */
const object = (value: object | null) => value && canonical(value)
/** Stored to the millisecond. */
const moment = (ms: number) => new Date(ms).getTime()
