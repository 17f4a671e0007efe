// The answers to an envelope that is refused and to a job that failed for good. They leave no receipt, unless something
// was done outside that must be undone.
import { type Refusal, refuse } from '../../src/errors.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import type { Deps } from '../deps.ts'
import { handlerOf } from '../handlers.ts'
import { settleOwed } from '../provider/compensation.ts'
import { withoutOwnCard } from './pan-in-names.ts'
import { tellWithoutReceipt } from './remember.ts'
import type { End, Work } from './work.ts'

/** An answer without a receipt. The same jti may come again. */
export async function refuseEnvelope(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<End> {
  deps.metrics.refusedEnvelopes.inc({ reason: refusal.reason })
  await tellOnly(work, refusal, deps)
  return { end: 'done', outcome: 'FAILED' }
}

/** After a fault has used up its attempts, or a defect: a 500, which is no receipt. */
export async function answerFault(work: Work<unknown>, deps: Deps): Promise<void> {
  await tellOnly(work, refuse('internal', 'body'), deps)
}

async function tellOnly(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<void> {
  await handlerOf(work.claims.kind)?.abandon?.(work, deps)
  if (await settleOwed(work, refusal, deps)) return
  const told = await withoutOwnCard(work, deps)
  if (!(await hasReplyQueue(work, deps))) delete told.claims.reply_to
  await tellWithoutReceipt(told, { fields: fieldsOf(refusal) }, deps)
}

/** Whoever is refused can't open more queues than others. */
export async function hasReplyQueue({ claims, addressee }: Work<unknown>, { directory }: Deps): Promise<boolean> {
  return claims.reply_to === undefined || directory.openReplyQueue(addressee, claims.reply_to)
}
