// `reversal`: undoes the operation of one receipt, if the envelope it names is the one that took effect and nobody has
// built on it since. A job that hasn't been started loses its place, so that it never will be. What was done outside is
// undone by recorded steps, between two moments of the receipt: REQUIRED and COMPLETED.
import { type Refusal, refuse } from '../src/errors.ts'
import type { ReversalStatus } from '../src/job/problem.ts'
import type { Reversal } from '../src/job/reversal.ts'
import * as receipts from '../src/store/job/receipts.ts'
import { type Db, hold, LostRace } from '../src/store/pool.ts'
import * as intents from '../src/store/provider/scheme-intents.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { undo } from '../src/token/undo.ts'
import { findBefore } from './card/before-image.ts'
import type { Deps } from './deps.ts'
import { type Handler, NotYet, type Settled, type Work } from './line/work.ts'
import { replaceBack, retire } from './provider/follow.ts'
import { owedOf } from './provider/compensation.ts'
import { undoAll } from './provider/undo.ts'

export const reversal: Handler<Reversal> = {
  async reach(work, request, deps) {
    if ((await intents.findByReceipt(deps.store, request.receipt_id)).length === 0) return request
    const refusal = await deps.store.transaction(db => beginUndoing(db, work, request, deps))
    if (refusal) return refusal
    const waitMs = await undoAll(request.receipt_id, deps)
    if (waitMs > 0) throw new NotYet(waitMs)
    return request
  },

  // All of it is decided under the lock of the receipt that is to be undone: whoever works that job waits, or has ended.
  decide: async (work, request, deps) => ({ save: db => settle(db, work, request, deps) }),
}

/** From here on the receipt says that it is being undone, and nobody goes on with its job. */
async function beginUndoing(db: Db, work: Work<Reversal>, request: Reversal, deps: Deps): Promise<Refusal | undefined> {
  await hold(db, request.receipt_id)
  const receipt = await receipts.find(db, request.receipt_id)
  if (receipt && receipt.clientId !== work.client.clientId) return refuse('field_value', 'body.receipt_id')
  if (receipt && (receipt.reversal !== null || !isToBeUndone(receipt, request))) return undefined
  const owed = await owedOf(db, request.receipt_id, deps)
  if (owed.length === 0) return undefined
  await intents.owe(db, owed, deps.clock())
  if (receipt) await reverse(db, receipt, work, 'REQUIRED', deps)
  else await forestall(db, work, request, 'REQUIRED', deps)
  return undefined
}

async function settle(db: Db, work: Work<Reversal>, request: Reversal, deps: Deps): Promise<Settled> {
  await hold(db, request.receipt_id)
  const receipt = await receipts.find(db, request.receipt_id)
  if (receipt && receipt.clientId !== work.client.clientId) return refuse('field_value', 'body.receipt_id')
  // Its job, or another attempt of it, spoke to the outside after we looked: begin anew.
  const isOpen = receipt ? receipt.reversal === null && isToBeUndone(receipt, request) : true
  if (isOpen && (await owedOf(db, request.receipt_id, deps)).length > 0) throw new LostRace('it was begun meanwhile')
  const reversalStatus = receipt
    ? await conclude(db, receipt, work, request, deps)
    : await forestall(db, work, request, null, deps)
  const record = { reversal_status: reversalStatus }
  return { code: 200, outcome: reversalStatus, tokenId: receipt?.tokenId ?? null, record }
}

/** The job hasn't left a receipt: from now on its receipt says that it was cancelled. */
async function forestall(
  db: Db,
  { claims, client, attempt, acceptedAt }: Work<Reversal>,
  { receipt_id: receiptId, envelope }: Reversal,
  status: 'REQUIRED' | null,
  deps: Deps,
): Promise<ReversalStatus> {
  await receipts.insertCancelled(db, {
    ...{ receiptId, clientId: client.clientId, iss: claims.iss, kind: claims.kind, jti: claims.jti },
    ...{ requestDigest: Buffer.alloc(0), envelopeDigest: Buffer.from(envelope, 'base64url') },
    ...{ replyTo: null, reference: null, status: 'CANCELLED', code: 500, outcome: null, refusal: null, tokenId: null },
    ...{ batchNo: null, chunk: null, counts: null, outcomes: null, failedRecords: 0 },
    ...{ revision: 1, reversal: status, attempt, acceptedAt, completedAt: deps.clock() },
  })
  return 'COMPLETED'
}

/** Refused, or a repeat of that jti succeeded meanwhile: then this envelope has left nothing behind. A deletion stands. */
function isToBeUndone(receipt: receipts.Receipt, { envelope }: Reversal): boolean {
  const isNamed = receipt.envelopeDigest.equals(Buffer.from(envelope, 'base64url'))
  return isNamed && receipt.status === 'SUCCEEDED' && receipt.tokenId !== null && receipt.outcome !== 'DELETED'
}

async function conclude(
  db: Db,
  receipt: receipts.Receipt,
  work: Work<Reversal>,
  request: Reversal,
  deps: Deps,
): Promise<ReversalStatus> {
  if (receipt.reversal === 'REQUIRED') {
    // One that was cancelled before it left a receipt has told nobody anything.
    if (receipt.requestDigest.length === 0) await receipts.settleCancelled(db, receipt.receiptId)
    else await receipts.revise(db, { ...receipt, reversal: 'COMPLETED', completedAt: deps.clock() })
    return 'COMPLETED'
  }
  if (receipt.reversal === 'COMPLETED' || receipt.status === 'CANCELLED') return 'COMPLETED'
  if (isToBeUndone(receipt, request)) {
    await reverse(db, receipt, work, null, deps)
    return 'COMPLETED'
  }
  const isNamed = receipt.envelopeDigest.equals(Buffer.from(request.envelope, 'base64url'))
  return isNamed && receipt.outcome === 'DELETED' ? 'COMPLETED' : 'NONE'
}

/** Puts the token's row back. `status`: whether something outside is yet to follow. */
async function reverse(
  db: Db,
  receipt: receipts.Receipt,
  work: Work<Reversal>,
  status: 'REQUIRED' | null,
  deps: Deps,
): Promise<void> {
  const row = await tokens.hold(db, receipt.tokenId ?? '')
  const now = deps.clock()
  const before = await findBefore(db, receipt.receiptId, deps.ring)
  const operation = { outcome: receipt.outcome, receiptId: receipt.receiptId, reversalId: work.receiptId, now }
  const undone = row && undo(row, before, operation)
  if (row && undone && !(await isTakenByAnother(db, undone))) {
    await tokens.updateAll(db, [{ ...undone, sealVersion: undone.sealed === null ? null : undone.sealVersion }])
    const doer = { receiptId: work.receiptId, clientId: work.client.clientId }
    if (undone.status === 'DELETED') await retire(db, [undone.tokenId], deps)
    else if (!isSameCard(row, undone)) await replaceBack(db, undone, doer, deps)
  }
  await receipts.revise(db, { ...receipt, status: 'CANCELLED', code: 500, reversal: status, completedAt: now })
}

function isSameCard(one: tokens.StoredToken, other: tokens.StoredToken): boolean {
  return other.fingerprint !== null && one.fingerprint?.equals(other.fingerprint) === true
}

/** The card that the token stood for may have a token of its own by now. */
async function isTakenByAnother(db: Db, { tokenId, fingerprint }: tokens.StoredToken): Promise<boolean> {
  if (fingerprint === null) return false
  const [other] = await tokens.findByFingerprints(db, [fingerprint])
  return other !== undefined && other.tokenId !== tokenId
}
