// The end of the line: the effect, the receipt and the outbox row in one transaction; then the answer, told at once.
import { isRefusal, REASONS } from '../src/errors.ts'
import { tookEffect } from '../src/job/outcome.ts'
import { resultId } from '../src/job/ids.ts'
import { fieldsOf } from '../src/job/problem.ts'
import * as outbox from '../src/store/outbox.ts'
import * as receipts from '../src/store/receipts.ts'
import type { Receipt } from '../src/store/receipts.ts'
import { type Answer, tell } from './answer.ts'
import type { End } from './attempt.ts'
import type { Deps } from './deps.ts'
import { answerOfReceipt } from './replay.ts'
import { type Decision, isChunk, type Work } from './work.ts'

/** Thrown to roll a probe back: nothing of it is kept. */
class ProbeDone extends Error {
  override name = 'ProbeDone'
}

export async function remember(
  work: Work<unknown>,
  requestDigest: Buffer,
  decision: Decision,
  previous: Receipt | undefined,
  deps: Deps,
  probe: boolean,
): Promise<End> {
  const { answer } = decision
  const completedAt = deps.clock()
  if (!isRefusal(answer) && isChunk(answer) && answer.dryRun) {
    if (probe) return { end: 'done', outcome: 'SUCCEEDED' }
    await deps.store.transaction(db => decision.save(db))
    await tellWithoutReceipt(work, { records: answer.records }, deps)
    return { end: 'done', outcome: 'SUCCEEDED' }
  }
  const receipt = receiptOf(work, requestDigest, answer, previous, completedAt)
  const written = await deps.store
    .transaction(
      async db => {
        await decision.save(db)
        const revision = previous ? await receipts.revise(db, { ...receipt, revision: previous.revision }) : await receipts.insert(db, receipt)
        if (probe) throw new ProbeDone()
        const outboxId = await outbox.insert(db, {
          clientId: work.client.clientId,
          replyTo: work.claims.reply_to ?? null,
          resultId: resultId(work.receiptId, revision),
          receiptId: work.receiptId,
          revision,
          body: null,
        })
        return { revision, outboxId }
      },
      { lock: work.receiptId },
    )
    .catch(error => {
      if (error instanceof ProbeDone) return undefined
      throw error
    })
  if (!written) return { end: 'done', outcome: 'SUCCEEDED' }
  deps.metrics.receipts.inc({ kind: work.claims.kind, status: receipt.status })
  const told = tell({ ...partsOf(decision), ...headOf(work, completedAt), revision: written.revision })
  await deps.announcer.publish({ ...addressOf(work), outboxId: written.outboxId, revision: written.revision, ...told })
  return { end: 'done', outcome: receipt.status === 'FAILED' ? 'FAILED' : 'SUCCEEDED' }
}

/** A refused envelope, a fault or a dry run: the outbox row carries the text itself. */
export async function tellWithoutReceipt(work: Work<unknown>, parts: Pick<Answer, 'fields' | 'records'>, deps: Deps): Promise<void> {
  const { told, outboxId, revision } = await deps.store.transaction(
    async db => {
      const revision = await outbox.nextRevision(db, work.receiptId)
      const told = tell({ ...parts, ...headOf(work, deps.clock()), revision })
      const { clientId, replyTo } = addressOf(work)
      const outboxId = await outbox.insert(db, { clientId, replyTo, resultId: told.resultId, receiptId: work.receiptId, revision, body: told.body })
      return { told, outboxId, revision }
    },
    { lock: work.receiptId },
  )
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision, ...told })
}

/** The stored outcome once more, to where the current envelope asks for it. */
export async function answerAgain(stored: Receipt, work: Work<unknown>, deps: Deps): Promise<void> {
  const answer = await answerOfReceipt(stored, deps)
  const told = tell(answer)
  const outboxId = await outbox.insert(deps.store, {
    clientId: work.client.clientId,
    replyTo: work.claims.reply_to ?? null,
    resultId: told.resultId,
    receiptId: stored.receiptId,
    revision: stored.revision,
    body: null,
  })
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision: stored.revision, ...told })
}

function addressOf(work: Work<unknown>): { clientId: string; replyTo: string | null } {
  return { clientId: work.client.clientId, replyTo: work.claims.reply_to ?? null }
}

function headOf(work: Work<unknown>, completedAt: number) {
  const { claims, receiptId, attempt, acceptedAt } = work
  return { receiptId, kind: claims.kind, jti: claims.jti, reference: claims.reference ?? null, attempt, acceptedAt, completedAt }
}

function partsOf({ answer }: Decision): Pick<Answer, 'fields' | 'success' | 'records'> {
  if (isRefusal(answer)) return { fields: fieldsOf(answer) }
  if (isChunk(answer)) return { records: answer.records }
  return { success: { code: answer.code, record: answer.record } }
}

function receiptOf(
  work: Work<unknown>,
  requestDigest: Buffer,
  answer: Decision['answer'],
  previous: Receipt | undefined,
  completedAt: number,
): Receipt {
  const { claims, client, receiptId, envelopeDigest, attempt, acceptedAt } = work
  const base: Receipt = {
    receiptId,
    clientId: client.clientId,
    iss: claims.iss,
    kind: claims.kind,
    jti: claims.jti,
    requestDigest,
    envelopeDigest,
    replyTo: claims.reply_to ?? null,
    reference: claims.reference ?? null,
    status: 'SUCCEEDED',
    code: 200,
    outcome: null,
    refusal: null,
    tokenId: null,
    batchNo: null,
    chunk: null,
    counts: null,
    outcomes: null,
    failedRecords: 0,
    revision: previous?.revision ?? 1,
    attempt,
    acceptedAt,
    completedAt,
  }
  if (isRefusal(answer)) return { ...base, status: 'FAILED', code: REASONS[answer.reason].code, refusal: fieldsOf(answer) }
  if (!isChunk(answer)) return { ...base, code: answer.code, outcome: answer.outcome, tokenId: answer.tokenId }
  const { batchNo, chunk, counts, packed } = answer
  const cancelled = counts.CANCELLED > 0 && !Object.entries(counts).some(([outcome, n]) => n > 0 && tookEffect(outcome as keyof typeof counts))
  return { ...base, status: cancelled ? 'CANCELLED' : 'SUCCEEDED', batchNo, chunk, counts, outcomes: packed, failedRecords: counts.FAILED }
}
