// Answers a job that has left a receipt already: with that receipt, again.
import { refuse } from '../../src/errors.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { hold } from '../../src/store/pool.ts'
import type { Deps } from '../deps.ts'
import { refuseEnvelope } from './refuse.ts'
import { answerAgain } from './remember.ts'
import type { End, Work } from './work.ts'

/** A cancelled job is put off for this long while it is being compensated. */
const COMPENSATING_MS = 1_000

/**
 * Answers the receipt again, to the current envelope's reply_to, unless it stands for another request. Undefined where
 * the receipt has changed meanwhile.
 */
export async function recallReceipt(
  stored: receipts.Receipt,
  digest: Buffer,
  work: Work<unknown>,
  deps: Deps,
): Promise<End | undefined> {
  // The receipt of a job that was cancelled before it began doesn't know the request.
  if (!stored.requestDigest.equals(digest) && stored.requestDigest.length > 0)
    return refuseEnvelope(work, refuse('jti_reused', 'body.jti'), deps)
  // Cancelled while it called a provider: the client is answered when that is compensated, and not before.
  if (stored.requestDigest.length === 0 && stored.reversal === 'REQUIRED') return { end: 'later', ms: COMPENSATING_MS }
  // The client learns that the job took effect: a reversal of the former envelope must not undo it afterwards.
  if (isHandedOn(stored, work) && !(await handOn(stored, work, deps))) return undefined
  await answerAgain(stored, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

/**
 * For a job that can't be done: answers the receipt that another copy of it has left, without opening the job, which may
 * be what it fails by. `again`: the receipt is newer than the one the attempt began from, but of an envelope that was
 * signed anew, so that the requests have to be compared.
 */
export async function recallForCopy(work: Work<unknown>, deps: Deps): Promise<End | 'again' | 'none'> {
  const stored = await receipts.find(deps.store, work.receiptId)
  if (!stored) return 'none'
  // One envelope is one request: its block is named there by its digest.
  if (stored.envelopeDigest.equals(work.envelopeDigest))
    return (await recallReceipt(stored, stored.requestDigest, work, deps)) ?? 'again'
  return work.foundRevision !== undefined && stored.revision > work.foundRevision ? 'again' : 'none'
}

/** Whether a reversal could undo it, and the envelope isn't older than the receipt's. */
function isHandedOn({ status, tokenId, reversal, ...stored }: receipts.Receipt, work: Work<unknown>): boolean {
  const couldBeUndone = status === 'SUCCEEDED' && tokenId !== null && reversal === null
  return couldBeUndone && !stored.envelopeDigest.equals(work.envelopeDigest) && stored.acceptedAt <= work.acceptedAt
}

function handOn(stored: receipts.Receipt, work: Work<unknown>, { store }: Deps): Promise<boolean> {
  return store.transaction(async db => {
    await hold(db, stored.receiptId)
    return receipts.handOn(db, stored, work)
  })
}
