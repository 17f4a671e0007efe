// The end of a job that is refused although its calls at providers had, or may have had, an effect: its receipt says
// REQUIRED, and a reversal is queued. The networks say what is owed.
import { isRefusal, type Refusal } from '../../src/errors.ts'
import { requestText } from '../../src/job/envelope/digest.ts'
import { type Failure, failureOf } from '../../src/job/problem.ts'
import type { NewReceipt } from '../../src/store/job/receipts.ts'
import { resultOf } from '../answer/result-text.ts'
import type { Decision, Work } from '../work.ts'
import type { LineDeps } from './deps.ts'

/** The decision; if it is a refusal, with what all attempts of the job have left at providers. */
export async function withCompensation(decision: Decision, work: Work<unknown>, deps: LineDeps): Promise<Decision> {
  if ('save' in decision || !isRefusal(decision.answer) || !asksProvider(work)) return decision
  const { effects, isOwed } = await deps.networks.compensation.find(work.receiptId, deps.store)
  const { effect } = decision
  return {
    ...decision,
    effect: { ...effect, networks: [...(effect.networks ?? []), ...effects] },
    ...(isOwed ? { reversal: 'REQUIRED' as const } : {}),
  }
}

/** For a job that ends without a decision. True if it owes compensation: then this function has answered the caller. */
export async function answerOwed(work: Work<unknown>, refusal: Refusal, deps: LineDeps): Promise<boolean> {
  const { kind } = work.claims
  if (!asksProvider(work)) return false
  const { compensation } = deps.networks
  const failure = failureOf(refusal, 'REQUIRED')
  const written = await compensation.endOwing(work.receiptId, () => receiptOf(work, failure, deps), deps)
  if (!written) return false
  const { receipt, outboxId, revision } = written
  deps.metrics.receipts.inc({ kind, status: receipt.status })
  const result = resultOf(
    { ...receipt, answers: work.asked.digest(), retell: work.entry.retell, revision },
    { failure },
  )
  await deps.announcer.publish({
    clientId: work.addressee,
    replyTo: receipt.replyTo,
    outboxId,
    revision,
    ...result,
  })
  await compensation.queueReversal(receipt, deps)
  return true
}

function asksProvider({ claims, entry }: Work<unknown>): boolean {
  return entry.asksProvider(claims.request)
}

async function receiptOf(work: Work<unknown>, failure: Failure, deps: LineDeps): Promise<NewReceipt> {
  const { claims, client, receiptId, envelopeDigest, asked, attempt, acceptedAt } = work
  const { jti, reference } = (await deps.cards.withoutOwnNumber(work, deps)).claims
  const digest = deps.ring.requestDigest(requestText(claims.kind, claims.request))
  return {
    receiptId,
    entityId: claims.entity_id,
    clientId: client.clientId,
    iss: claims.iss,
    kind: claims.kind,
    jti,
    requestDigest: digest.hash,
    digestVersion: digest.keyVersion,
    contentDigest: (await deps.cards.contentDigest(work, undefined, digest.keyVersion, deps)) ?? null,
    envelopeDigest,
    answers: asked.digest(),
    replyTo: claims.reply_to ?? null,
    reference: reference ?? null,
    status: 'FAILED',
    code: failure.status,
    outcome: null,
    refusal: failure.fields,
    tokenId: null,
    batchNo: null,
    chunk: null,
    counts: null,
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: 1,
    reversal: 'REQUIRED',
    attempt,
    acceptedAt,
    completedAt: deps.clock(),
  }
}
