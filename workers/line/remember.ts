// The end of the line: the effect, the receipt and the outbox row in one transaction; then the answer, told at once.
import { isRefusal, REASONS } from '../../src/errors.ts'
import { OUTCOMES, tookEffect } from '../../src/job/outcome.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Deps } from '../deps.ts'
import { queueReversal } from '../provider/queue-reversal.ts'
import { type Answer, tell } from './result-text.ts'
import { answerOfReceipt } from './stored-answer.ts'
import { type ChunkAnswer, type Decision, type End, isChunk, type Settled, type Work } from './work.ts'

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
  const written = await deps.store
    .transaction(
      async db => {
        const tell = async (settled: Settled) => {
          const receipt = receiptOf(work, requestDigest, settled, previous, deps.clock(), decision.reversal)
          const told = previous
            ? await receipts.revise(db, { ...receipt, revision: previous.revision })
            : await receipts.insert(db, receipt)
          return { settled, told: { receipt, ...told } }
        }
        if (decision.settled) {
          const [, told] = await Promise.all([decision.save(db), tell(decision.settled)])
          if (probe) throw new ProbeDone()
          return told
        }
        const settled = await decision.save(db)
        if (!isRefusal(settled) && isChunk(settled) && settled.dryRun) {
          if (probe) throw new ProbeDone()
          return { settled, told: undefined }
        }
        const told = await tell(settled)
        if (probe) throw new ProbeDone()
        return told
      },
      { lock: work.receiptId },
    )
    .catch(error => {
      if (error instanceof ProbeDone) return undefined
      throw error
    })
  if (!written) return { end: 'done', outcome: 'SUCCEEDED' }
  const { told } = written
  const settled = decision.after ? await decision.after(written.settled) : written.settled
  if (!told) {
    await tellWithoutReceipt(work, partsOf(settled), deps)
    return { end: 'done', outcome: 'SUCCEEDED' }
  }
  const { receipt, outboxId, revision } = told
  deps.metrics.receipts.inc({ kind: work.claims.kind, status: receipt.status })
  if (!isRefusal(settled) && isChunk(settled)) noteRecords(settled, deps)
  const reversalStatus = receipt.reversal ?? undefined
  const message = tell({
    ...partsOf(settled),
    ...headOf(work, receipt.completedAt),
    revision,
    ...(reversalStatus ? { reversalStatus } : {}),
  })
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision, ...message })
  if (receipt.reversal === 'REQUIRED') await queueReversal(receipt, deps)
  return { end: 'done', outcome: receipt.status === 'FAILED' ? 'FAILED' : 'SUCCEEDED' }
}

function noteRecords({ recordKind: kind, counts }: ChunkAnswer, { metrics }: Deps): void {
  for (const outcome of OUTCOMES) if (counts[outcome] > 0) metrics.records.inc({ kind, outcome }, counts[outcome])
}

/** A refused envelope, a fault or a dry run: the outbox row carries the text itself. */
export async function tellWithoutReceipt(
  work: Work<unknown>,
  parts: Pick<Answer, 'fields' | 'records'>,
  deps: Deps,
): Promise<void> {
  const { told, outboxId, revision } = await deps.store.transaction(
    async db => {
      // Beside a receipt, whose highest revision holds, an answer to an envelope must not pass for the outcome.
      const stands = (await receipts.find(db, work.receiptId)) !== undefined
      const revision = stands ? 0 : await outbox.nextRevision(db, work.receiptId)
      const told = tell({ ...parts, ...headOf(work, deps.clock()), revision, envelopeDigest: work.envelopeDigest })
      const { clientId, replyTo } = addressOf(work)
      const outboxId = await outbox.insert(db, {
        clientId,
        replyTo,
        resultId: told.resultId,
        receiptId: work.receiptId,
        revision,
        body: told.body,
      })
      return { told, outboxId, revision }
    },
    { lock: work.receiptId },
  )
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision, ...told })
}

/** The stored outcome once more, to where the current envelope asks for it. */
export async function answerAgain(stored: Receipt, work: Work<unknown>, deps: Deps): Promise<void> {
  const answer = await answerOfReceipt(stored, deps)
  // The receipt of a job that was cancelled before it began doesn't know what the job was: the text is kept.
  const isNameless = stored.requestDigest.length === 0
  const told = tell(isNameless ? { ...answer, ...headOf(work, stored.completedAt) } : answer)
  const outboxId = await outbox.insert(deps.store, {
    ...addressOf(work),
    resultId: told.resultId,
    receiptId: stored.receiptId,
    revision: stored.revision,
    body: isNameless ? told.body : null,
  })
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision: stored.revision, ...told })
}

function addressOf(work: Work<unknown>): { clientId: string; replyTo: string | null } {
  return { clientId: work.addressee, replyTo: work.claims.reply_to ?? null }
}

function headOf(work: Work<unknown>, completedAt: number) {
  const { claims, receiptId, attempt, acceptedAt } = work
  return {
    receiptId,
    kind: claims.kind,
    jti: claims.jti,
    reference: claims.reference ?? null,
    attempt,
    acceptedAt,
    completedAt,
  }
}

function partsOf(settled: Settled): Pick<Answer, 'fields' | 'success' | 'records'> {
  if (isRefusal(settled)) return { fields: fieldsOf(settled) }
  if (isChunk(settled)) return { records: settled.records }
  return { success: { code: settled.code, record: settled.record } }
}

function receiptOf(
  work: Work<unknown>,
  requestDigest: Buffer,
  settled: Settled,
  previous: Receipt | undefined,
  completedAt: number,
  reversal: Decision['reversal'],
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
    reversal: reversal ?? null,
    attempt,
    acceptedAt,
    completedAt,
  }
  if (isRefusal(settled))
    return { ...base, status: 'FAILED', code: REASONS[settled.reason].code, refusal: fieldsOf(settled) }
  if (!isChunk(settled)) return { ...base, code: settled.code, outcome: settled.outcome, tokenId: settled.tokenId }
  const { batchNo, chunk, counts, packed } = settled
  const cancelled =
    counts.CANCELLED > 0 &&
    !Object.entries(counts).some(([outcome, n]) => n > 0 && tookEffect(outcome as keyof typeof counts))
  return {
    ...base,
    status: cancelled ? 'CANCELLED' : 'SUCCEEDED',
    batchNo,
    chunk,
    counts,
    outcomes: packed,
    failedRecords: counts.FAILED,
  }
}
