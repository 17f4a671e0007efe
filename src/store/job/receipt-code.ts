// What the code of a receipt covers: every column that decides. `revision` counts answers, and `day` says where the row lies; the
// addressee follows from `iss` and `client_id`.
import { hash } from 'node:crypto'
import { canonical } from '../../job/envelope/digest.ts'
import { type Coder, isCoded } from '../codes.ts'
import type { Receipt, StoredReceipt } from './receipts.ts'

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
