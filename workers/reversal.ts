// `reversal`: undoes the operation of one receipt, if the envelope it names is the one that took effect and nobody has
// built on it since. A job that hasn't been started loses its place, so that it never will be.
import { refuse } from '../src/errors.ts'
import { requestText } from '../src/job/digest.ts'
import type { ReversalStatus } from '../src/job/problem.ts'
import type { Reversal } from '../src/job/reversal.ts'
import { type Db, hold } from '../src/store/pool.ts'
import * as receipts from '../src/store/receipts.ts'
import * as tokens from '../src/store/tokens.ts'
import { undo } from '../src/token/undo.ts'
import { findBefore } from './before-image.ts'
import type { Deps } from './deps.ts'
import type { Handler, Settled, Work } from './work.ts'

export const reversal: Handler<Reversal, undefined, Reversal> = {
  open: async () => undefined,
  digestText: work => requestText('reversal', work.claims.request),
  prepare: async work => work.request,
  // All of it is decided under the lock of the receipt that is to be undone: whoever works that job waits, or has ended.
  decide: async (work, request, deps) => ({ save: db => settle(db, work, request, deps) }),
}

async function settle(db: Db, work: Work<Reversal>, request: Reversal, deps: Deps): Promise<Settled> {
  await hold(db, request.receipt_id)
  const receipt = await receipts.find(db, request.receipt_id)
  if (receipt && receipt.clientId !== work.client.clientId) return refuse('field_value', 'body.receipt_id')
  const reversalStatus = receipt
    ? await reverse(db, receipt, work, request, deps)
    : await forestall(db, work, request, deps)
  const record = { reversal_status: reversalStatus }
  return { code: 200, outcome: reversalStatus, tokenId: receipt?.tokenId ?? null, record }
}

/** The job hasn't been started: from now on its receipt says that it was cancelled. */
async function forestall(
  db: Db,
  { claims, client, attempt, acceptedAt }: Work<Reversal>,
  { receipt_id: receiptId, envelope }: Reversal,
  deps: Deps,
): Promise<ReversalStatus> {
  await receipts.insertCancelled(db, {
    ...{ receiptId, clientId: client.clientId, iss: claims.iss, kind: claims.kind, jti: claims.jti },
    ...{ requestDigest: Buffer.alloc(0), envelopeDigest: Buffer.from(envelope, 'base64url') },
    ...{ replyTo: null, reference: null, status: 'CANCELLED', code: 500, outcome: null, refusal: null, tokenId: null },
    ...{ batchNo: null, chunk: null, counts: null, outcomes: null, failedRecords: 0 },
    ...{ revision: 1, attempt, acceptedAt, completedAt: deps.clock() },
  })
  return 'COMPLETED'
}

async function reverse(
  db: Db,
  receipt: receipts.Receipt,
  work: Work<Reversal>,
  request: Reversal,
  deps: Deps,
): Promise<ReversalStatus> {
  if (receipt.status === 'CANCELLED') return 'COMPLETED'
  const isNamed = receipt.envelopeDigest.equals(Buffer.from(request.envelope, 'base64url'))
  // Refused, or a repeat of that jti succeeded meanwhile: this envelope has left nothing behind.
  if (!isNamed || receipt.status === 'FAILED' || receipt.tokenId === null) return 'NONE'
  // A deletion stands: only before it begins can it be stopped.
  if (receipt.outcome === 'DELETED') return 'COMPLETED'
  const row = await tokens.hold(db, receipt.tokenId)
  const now = deps.clock()
  const before = await findBefore(db, receipt.receiptId, deps.ring)
  const operation = { outcome: receipt.outcome, receiptId: receipt.receiptId, reversalId: work.receiptId, now }
  const undone = row && undo(row, before, operation)
  if (undone && !(await isTakenByAnother(db, undone)))
    await tokens.updateAll(db, [{ ...undone, sealVersion: undone.sealed === null ? null : undone.sealVersion }])
  await receipts.revise(db, { ...receipt, status: 'CANCELLED', code: 500, completedAt: now })
  return 'COMPLETED'
}

/** The card that the token stood for may have a token of its own by now. */
async function isTakenByAnother(db: Db, { tokenId, fingerprint }: tokens.StoredToken): Promise<boolean> {
  if (fingerprint === null) return false
  const [other] = await tokens.findByFingerprints(db, [fingerprint])
  return other !== undefined && other.tokenId !== tokenId
}
