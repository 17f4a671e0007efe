// The end of the line: one transaction writes the effect, the receipt and the outbox row; then the result is published.
// Nothing is decided here.
import { assert, isRefusal } from '../../src/errors.ts'
import { OUTCOMES, tookEffect } from '../../src/job/outcome.ts'
import { failureOf, type ReversalStatus } from '../../src/job/problem.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as receiptKeys from '../../src/store/job/receipt-keys.ts'
import type { NewReceipt, Receipt, StoredReceipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Hashed } from '../../src/vault/ring/held-keys.ts'
import type { Message } from '../answer/deliver.ts'
import { resultOf, type ToldAnswer } from '../answer/result-text.ts'
import { writeEffects } from '../effect/write-effect.ts'
import { mayJoin, type WrittenSingle } from '../set/single.ts'
import {
  type ChunkAnswer,
  type Decision,
  type EffectDecision,
  type End,
  isChunk,
  type JobAnswer,
  type Work,
} from '../work.ts'
import type { LineDeps } from './deps.ts'

/** Thrown to roll back the transaction of a probe, which stores nothing. */
class ProbeDone extends Error {
  override name = 'ProbeDone'
}

export interface Decided {
  work: Work<unknown>
  digest: Hashed
  /** The hash of what the request says, under the same key. */
  content: Buffer | undefined
  decision: Decision
  /** The job's earlier receipt, if the job works its failed records again. */
  previous: StoredReceipt | undefined
  /** The attempt is a probe: its transaction is rolled back, and nothing is stored. */
  isProbe: boolean
  /** How often this attempt was begun again. */
  run: number
}

/** What was committed. */
interface Written {
  answer: JobAnswer
  /** Undefined for a dry run, which leaves no receipt. */
  receipt: WrittenSingle | undefined
}

export async function remember(decided: Decided, deps: LineDeps): Promise<End> {
  const { work, decision } = decided
  const written = await (joins(decided) ? writeWithOthers(decided, deps) : writeAlone(decided, deps))
  if (!written) return { end: 'done', outcome: 'SUCCEEDED' }
  if ('save' in decision) decision.saved?.(written.answer)
  const answer = 'effect' in decision && decision.after ? await decision.after() : written.answer
  // Those of a dry run, too, which otherwise counts nothing.
  if (!isRefusal(answer) && isChunk(answer)) countForms(answer, deps)
  if (!written.receipt) {
    await answerWithoutReceipt(work, answer, deps)
    return { end: 'done', outcome: 'SUCCEEDED' }
  }
  const { row } = written.receipt
  deps.metrics.receipts.inc({ kind: work.claims.kind, status: row.status })
  if (!isRefusal(answer) && isChunk(answer)) noteChunk(work.claims.kind, answer, deps)
  await deps.announcer.publish(written.receipt.message ?? messageOf(work, answer, written.receipt), deps)
  if (row.reversal === 'REQUIRED') await deps.networks.compensation.queueReversal(row, deps)
  return { end: 'done', outcome: row.status === 'FAILED' ? 'FAILED' : 'SUCCEEDED' }
}

function messageOf(work: Work<unknown>, answer: JobAnswer, { row, outboxId, revision }: WrittenSingle): Message {
  const result = resultOf({ ...headOf(work, row.completedAt), revision }, toldOf(answer, row.reversal ?? 'NONE'))
  return { ...addressOf(work), outboxId, revision, ...result }
}

/** Undefined for a probe. */
async function writeAlone(decided: Decided, deps: LineDeps): Promise<Written | undefined> {
  const work = async (db: Db) => {
    const written = await write(db, decided, deps)
    if (decided.isProbe) throw new ProbeDone()
    return written
  }
  const meanwhile = (written: Written) => sealEarly(written, decided, deps)
  return deps.store.transaction(work, { lock: decided.work.receiptId, meanwhile }).catch(error => {
    if (error instanceof ProbeDone) return undefined
    throw error
  })
}

/** Signs the result while the commit is under way; if the commit fails, the signed result isn't published. */
function sealEarly({ answer, receipt }: Written, { work, decision }: Decided, { announcer }: LineDeps): void {
  const isFinal = !('effect' in decision && decision.after)
  if (receipt && isFinal) receipt.message = announcer.seal(messageOf(work, answer, receipt))
}

interface Joining extends Decided {
  decision: EffectDecision
}

/**
 * Whether the job may be written together with others. A job that is tried again is written alone, so that a job that
 * makes sets fail does so only once.
 */
function joins(decided: Decided): decided is Joining {
  const { work, decision, previous, isProbe, run } = decided
  if (work.entry.bulk || isProbe || previous || run > 0 || work.attempt > 1) return false
  if (!('effect' in decision) || decision.after || decision.reversal) return false
  return !work.entry.asksProvider(work.claims.request) && mayJoin(decision.effect)
}

async function writeWithOthers(decided: Joining, deps: LineDeps): Promise<Written> {
  const { answer, effect } = decided.decision
  const receipt = await deps.sets.write({
    receipt: receiptOf(decided, answer, deps.clock()),
    effect,
    trace: deps.span?.context,
    alone: async () => {
      const written = await writeAlone(decided, deps)
      assert(written?.receipt !== undefined, 'a job that may join others leaves a receipt')
      return written.receipt
    },
  })
  return { answer, receipt }
}

async function write(db: Db, decided: Decided, deps: LineDeps): Promise<Written> {
  const { decision } = decided
  if ('effect' in decision) {
    const { answer, effect } = decision
    // The statement for the receipt is sent right behind the effect, without waiting for the effect's result.
    const [, receipt] = await Promise.all([writeEffects(db, [effect], deps), writeReceipt(db, decided, answer, deps)])
    return { answer, receipt }
  }
  const answer = await decision.save(db)
  const isDryRun = !isRefusal(answer) && isChunk(answer) && answer.dryRun
  return { answer, receipt: isDryRun ? undefined : await writeReceipt(db, decided, answer, deps) }
}

async function writeReceipt(
  db: Db,
  decided: Decided,
  answer: JobAnswer,
  { clock, ring }: LineDeps,
): Promise<NonNullable<Written['receipt']>> {
  const row = receiptOf(decided, answer, clock())
  const { previous } = decided
  const [written] = previous
    ? [await receipts.revise(db, ring, previous, row)]
    : await receipts.insertAll(db, ring, [row])
  assert(written !== undefined, 'each receipt that is written is answered for')
  return { row, ...written }
}

function noteChunk(
  queue: string,
  { recordKind: kind, counts, batchNo }: ChunkAnswer,
  { metrics, progress }: LineDeps,
): void {
  metrics.minuteWork.noteRows(queue, counts)
  if (batchNo !== null) progress.note(batchNo)
  for (const outcome of OUTCOMES) if (counts[outcome] > 0) metrics.records.inc({ kind, outcome }, counts[outcome])
}

/** Counts the records of a chunk by the form in which they were decided. */
function countForms({ counts, asObjects }: ChunkAnswer, { metrics }: LineDeps): void {
  if (!asObjects) return
  for (const outcome of OUTCOMES) {
    if (counts[outcome] === 0) continue
    metrics.chunkRecords.inc({ form: 'objects', outcome }, asObjects[outcome])
    metrics.chunkRecords.inc({ form: 'columns', outcome }, counts[outcome] - asObjects[outcome])
  }
}

/** Answers a refused envelope, a fault or a dry run: the outbox row holds the text itself. */
export async function answerWithoutReceipt(work: Work<unknown>, answer: JobAnswer, deps: LineDeps): Promise<void> {
  const { result, outboxId, revision } = await deps.store.transaction(
    async db => {
      // If a receipt exists, the answer to an envelope gets revision 0, so that it doesn't count as the outcome: the
      // highest revision does.
      const hasReceipt = (await receipts.findAll(db, [work.receiptId])).length > 0
      const revision = hasReceipt ? 0 : await receiptKeys.countAnswer(db, work.receiptId)
      const head = headOf(work, deps.clock())
      const result = resultOf({ ...head, revision }, toldOf(answer))
      const outboxId = await outbox.insert(db, deps.ring, {
        ...addressOf(work),
        resultId: result.resultId,
        receiptId: work.receiptId,
        revision,
        envelopeDigest: work.envelopeDigest,
        answers: work.asked.digest(),
        body: result.body,
      })
      return { result, outboxId, revision }
    },
    { lock: work.receiptId },
  )
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision, ...result }, deps)
}

/** Answers the stored outcome again, on the queue that the current envelope names. */
export async function answerAgain(stored: Receipt, work: Work<unknown>, deps: LineDeps): Promise<void> {
  const { head, answer } = await deps.cards.storedAnswer(stored, deps)
  // The receipt of a job that was cancelled before it began doesn't know the job, so the text is stored in the outbox.
  const isNameless = stored.requestDigest.length === 0
  const { envelopeDigest } = work
  const answers = work.asked.digest()
  const again = isNameless ? headOf(work, stored.completedAt) : { envelopeDigest, answers }
  const result = resultOf({ ...head, ...again }, answer)
  const outboxId = await outbox.insert(deps.store, deps.ring, {
    ...addressOf(work),
    resultId: result.resultId,
    receiptId: stored.receiptId,
    revision: stored.revision,
    envelopeDigest,
    answers,
    body: isNameless ? result.body : null,
  })
  await deps.announcer.publish({ ...addressOf(work), outboxId, revision: stored.revision, ...result }, deps)
}

function addressOf({ addressee, claims }: Work<unknown>): Pick<Message, 'clientId' | 'replyTo' | 'inSets'> {
  return { clientId: addressee, replyTo: claims.reply_to ?? null, inSets: claims.optional?.result_sets }
}

function headOf(work: Work<unknown>, completedAt: number) {
  const { claims, entry, receiptId, envelopeDigest, asked, signedKind: kind, attempt, acceptedAt } = work
  return {
    receiptId,
    envelopeDigest,
    answers: asked.digest(),
    kind,
    retell: entry.retell,
    jti: claims.jti,
    reference: claims.reference ?? null,
    attempt,
    acceptedAt,
    completedAt,
  }
}

function toldOf(answer: JobAnswer, reversalStatus?: ReversalStatus): ToldAnswer {
  return isRefusal(answer) ? { failure: failureOf(answer, reversalStatus) } : answer
}

function receiptOf(
  { work, digest, content, decision, previous }: Decided,
  answer: JobAnswer,
  completedAt: number,
): NewReceipt {
  const { claims, client, receiptId, envelopeDigest, asked, attempt, acceptedAt } = work
  const base: NewReceipt = {
    receiptId,
    entityId: claims.entity_id,
    clientId: client.clientId,
    iss: claims.iss,
    kind: claims.kind,
    jti: claims.jti,
    requestDigest: digest.hash,
    digestVersion: digest.keyVersion,
    contentDigest: content ?? null,
    envelopeDigest,
    answers: asked.digest(),
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
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: previous?.revision ?? 1,
    reversal: ('effect' in decision ? decision.reversal : undefined) ?? null,
    attempt,
    acceptedAt,
    completedAt,
  }
  if (isRefusal(answer)) {
    const { status, fields } = failureOf(answer)
    return { ...base, status: 'FAILED', code: status, refusal: fields }
  }
  if (!isChunk(answer)) return { ...base, code: answer.code, outcome: answer.outcome, tokenId: answer.tokenId }
  const { batchNo, chunk, counts, reasons, packed } = answer
  const cancelled =
    counts.CANCELLED > 0 &&
    !Object.entries(counts).some(([outcome, n]) => n > 0 && tookEffect(outcome as keyof typeof counts))
  return {
    ...base,
    status: cancelled ? 'CANCELLED' : 'SUCCEEDED',
    batchNo,
    chunk,
    counts,
    reasons,
    outcomes: packed,
    failedRecords: counts.FAILED,
  }
}
