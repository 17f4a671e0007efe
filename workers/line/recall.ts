// Answers a job that already has a receipt from that receipt.
import { refuse } from '../../src/errors.ts'
import { askersOf, isAsker, isUndoable, withAsker } from '../../src/job/answer/askers.ts'
import { isProved } from '../../src/store/job/receipt.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { hold } from '../../src/store/pool.ts'
import type { End, Work } from '../work.ts'
import type { LineDeps } from './deps.ts'
import { refuseEnvelope } from './refuse.ts'
import { answerAgain } from './remember.ts'

/** How long a cancelled job is delayed while its provider calls are being compensated. */
const COMPENSATING_MS = 1_000

/**
 * Sends the receipt's answer again, to the `reply_to` of the current envelope. Refuses the job with `jti_reused` if the
 * receipt belongs to another request. `isSame`: whether it belongs to this one. Undefined if the receipt has changed
 * since it was read.
 */
export async function recallReceipt(
  stored: receipts.StoredReceipt,
  isSame: boolean,
  work: Work<unknown>,
  deps: LineDeps,
): Promise<End | undefined> {
  // The receipt of a job that was cancelled before it began has no request digest.
  if (!isSame && stored.requestDigest.length > 0) return refuseEnvelope(work, refuse('jti_reused', 'body.jti'), deps)
  // The job was cancelled during a call to a provider: the client is answered only after the compensation.
  if (stored.requestDigest.length === 0 && stored.reversal === 'REQUIRED') return { end: 'later', ms: COMPENSATING_MS }
  // The sender will learn that the job took effect, so a reversal of another envelope must not undo it afterwards.
  if (isUndoable(stored) && !(await addAsker(stored, work, deps))) return undefined
  await answerAgain(stored, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

/**
 * Answers a job whose receipt tokenmill didn't write, or that was changed since: nobody knows what was decided, so nothing is done
 * and nothing that the row says is told.
 */
export function refuseUnproved(work: Work<unknown>, deps: LineDeps): Promise<End> {
  deps.onUnproved('receipt', work.receiptId)
  return refuseEnvelope(work, refuse('receipt_unproved', 'body.jti'), deps)
}

/**
 * For a job that failed for good: answers from the receipt that another copy of the job has left. The job isn't opened,
 * because opening may be what fails. `again`: the receipt is newer than the attempt's beginning but belongs to an
 * envelope that was signed anew, so the requests must be compared.
 */
export async function recallForCopy(work: Work<unknown>, deps: LineDeps): Promise<End | 'again' | 'none'> {
  const stored = await receipts.find(deps.store, work.receiptId)
  if (!stored) return 'none'
  if (!isProved(deps.ring, stored)) return refuseUnproved(work, deps)
  // The same envelope is the same request: it names its block by digest.
  if (stored.envelopeDigest.equals(work.envelopeDigest) || isAsker(stored, work.envelopeDigest))
    return (await recallReceipt(stored, true, work, deps)) ?? 'again'
  return work.foundRevision !== undefined && stored.revision > work.foundRevision ? 'again' : 'none'
}

/** Records that this envelope has asked for the effect, too. False if the receipt has changed since it was read. */
async function addAsker(
  stored: receipts.StoredReceipt,
  { envelopeDigest }: Work<unknown>,
  { store, ring }: LineDeps,
): Promise<boolean> {
  if (isAsker(stored, envelopeDigest)) return true
  return store.transaction(async db => {
    await hold(db, stored.receiptId)
    const current = await receipts.find(db, stored.receiptId)
    if (current?.revision !== stored.revision || !isProved(ring, current)) return false
    const known = askersOf(current)
    const askers = withAsker(known, envelopeDigest)
    if (askers !== known) await receipts.recordAskers(db, ring, current, askers)
    return true
  })
}
