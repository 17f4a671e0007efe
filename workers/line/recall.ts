// What a job that left a receipt already is answered: that receipt, again.
import { refuse } from '../../src/errors.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { hold } from '../../src/store/pool.ts'
import type { Deps } from '../deps.ts'
import { refuseEnvelope } from './refuse.ts'
import { answerAgain } from './remember.ts'
import type { End, Work } from './work.ts'

/** How long a cancelled job is put off that is still being undone. */
const UNDOING_MS = 1_000

/**
 * A receipt is there: answer it again, to the current envelope's reply_to, unless it stands for another request.
 * Undefined where it is another by now.
 */
export async function recallReceipt(
  stored: receipts.Receipt,
  digest: Buffer,
  work: Work<unknown>,
  deps: Deps,
): Promise<End | undefined> {
  // One that was cancelled before it began knows nothing of the request.
  if (!stored.requestDigest.equals(digest) && stored.requestDigest.length > 0)
    return refuseEnvelope(work, refuse('jti_reused', 'body.jti'), deps)
  // Cancelled while it spoke to the outside: it is told when that is undone, and not before.
  if (stored.requestDigest.length === 0 && stored.reversal === 'REQUIRED') return { end: 'later', ms: UNDOING_MS }
  // Whoever repeats it is told that it holds: a reversal of the envelope before must not take it away afterwards.
  if (isHandedOn(stored, work) && !(await handOn(stored, work, deps))) return undefined
  await answerAgain(stored, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

/** Whether it could be undone, and is asked for by an envelope that isn't older. */
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
