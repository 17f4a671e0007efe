// The answers to an envelope that is refused and to a job that failed for good. They leave no receipt, unless the job's
// provider calls must be compensated.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { End, Work } from '../work.ts'
import type { LineDeps } from './deps.ts'
import { handlerOf } from './handlers.ts'
import { answerOwed } from './owed.ts'
import { answerWithoutReceipt } from './remember.ts'

/** Answers without a receipt, so the same jti may come again. */
export async function refuseEnvelope(work: Work<unknown>, refusal: Refusal, deps: LineDeps): Promise<End> {
  deps.metrics.refusedEnvelopes.inc({ reason: refusal.reason })
  await answerRefusal(work, refusal, deps)
  return { end: 'done', outcome: 'FAILED' }
}

/**
 * Answers 500 after a defect, or after a fault used up the attempts. It leaves no receipt, unless provider calls must
 * be compensated.
 */
export async function answerFault(work: Work<unknown>, deps: LineDeps): Promise<void> {
  await answerRefusal(work, refuse('internal', 'body'), deps)
}

async function answerRefusal(work: Work<unknown>, refusal: Refusal, deps: LineDeps): Promise<void> {
  await handlerOf(work.claims.kind, deps)?.abandon?.(work, deps)
  if (await answerOwed(work, refusal, deps)) return
  const tellable = await deps.cards.withoutOwnNumber(work, deps)
  if (!(await hasReplyQueue(work, deps))) {
    // The answer goes to the client's common queue. `optional` tells of the reader of the reply queue only, so it is
    // dropped, too.
    delete tellable.claims.reply_to
    delete tellable.claims.optional
  }
  await answerWithoutReceipt(tellable, refusal, deps)
}

/** Whether the client's reply queue may be used. A client that is refused can't open more queues than others. */
export async function hasReplyQueue({ claims, addressee }: Work<unknown>, { directory }: LineDeps): Promise<boolean> {
  return claims.reply_to === undefined || directory.openReplyQueue(addressee, claims.reply_to)
}
