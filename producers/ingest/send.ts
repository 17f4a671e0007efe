// Sends chunks, of which a bounded number is unanswered, and yields their results in the order of the file. The client
// library sends an unanswered chunk again; this file waits for the answer.
import { isRefusal, REASONS, textOf } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { UPGRADE_WORKERS } from '../../src/job/envelope/features.ts'
import { type Counts, noCounts } from '../../src/job/outcome.ts'
import { reasonIn, reasonsIn } from '../../src/job/problem.ts'
import { openAnswerDeadline, tellTo } from '../answer-deadline.ts'
import { untilSent } from '../client/bulk.ts'
import { type RecordForm, sendInForm } from '../client/in-form.ts'
import { openWindow, type WaitingEnds } from '../client/window.ts'
import { type Client, ClosedError } from '../client.ts'
import type { FileRunDeps } from '../file-run.ts'
import { FileError } from '../rows/file-error.ts'
import { type LedgerChunk, type LedgerPlan, transactionBatch } from '../transaction-batch.ts'
import type { RowChunk } from './chunks.ts'
import { soundId } from './record.ts'
import type { RefusedLine } from './results.ts'

export interface ChunkEnd {
  counts: Counts
  /** The refused lines in the order of the file. */
  refused: RefusedLine[]
}

/** How long an answer is awaited, in ms: longer than any job may wait for its start. */
const ANSWER_MS_MAX = 8 * 86_400_000
const NOBODY_MS = 10_000
const NO_RESULT: Promise<Result | undefined> = Promise.resolve(undefined)

export async function sendChunks(
  chunks: AsyncIterable<RowChunk>,
  { batchId, inFlight, extent }: LedgerPlan & { inFlight: number },
  client: Client,
  deps: FileRunDeps,
  onChunkEnd: (end: ChunkEnd) => Promise<void>,
): Promise<{ complete: boolean; rows: number }> {
  const form: RecordForm = { now: 'columns' }
  const window = openWindow<SentChunk, Result | undefined, ChunkEnd>({
    limits: () => ({ unanswered: inFlight }),
    endOf: ({ rows: sent }, result) => endOf(sent, result),
    write: onChunkEnd,
    waiting: openWaitingEnds(),
  })
  let rows = 0
  let position = 0
  const { stop, giveUpAfterMs } = deps
  const onEnd = () => client.close()
  const answerDeadline = openAnswerDeadline({ stop, giveUpAfterMs, onEnd, tell: tellTo(deps.stream) })
  const stopWatching = watchForWorkers(deps, () => window.size() > 0)
  let complete = true
  try {
    for await (const next of chunks) {
      if (deps.stop.aborted) {
        complete = false
        break
      }
      rows += next.refused.length + (next.chunk?.lines.count ?? 0)
      const sent = { position, rows: next }
      await window.room(sent)
      const answer = next.chunk
        ? answerDeadline.watch(send(next.chunk, { batchId, extent, form }, client, deps.stop))
        : NO_RESULT
      window.push(sent, answer)
      position += 1
    }
    await window.drain()
  } catch (error) {
    // The client was closed at the answer deadline. The next run sends the unanswered chunks again.
    if (!(error instanceof ClosedError)) throw error
    complete = false
  } finally {
    answerDeadline.close()
    stopWatching()
  }
  return { complete, rows }
}

interface SentChunk {
  position: number
  rows: RowChunk
}

/** The most chunks, and the most refused lines of chunks, that wait for an older one. */
const WAITING_MAX = { chunks: 10_000, refused: 100_000 } as const

/** Ends of chunks are kept in memory: they are counts, and the refused lines. */
function openWaitingEnds(): WaitingEnds<ChunkEnd> {
  const ends = new Map<number, ChunkEnd>()
  let refused = 0
  return {
    isFull: () => ends.size >= WAITING_MAX.chunks || refused >= WAITING_MAX.refused,
    async put(at, end) {
      ends.set(at, end)
      refused += end.refused.length
    },
    async take(at) {
      const end = ends.get(at)
      if (end === undefined) throw new Error(`broken law: chunk ${at} waits`)
      ends.delete(at)
      refused -= end.refused.length
      return end
    },
  }
}

function send(
  chunk: LedgerChunk,
  { form, ...plan }: LedgerPlan & { form: RecordForm },
  client: Client,
  stop: AbortSignal,
): Promise<Result> {
  return sendInForm(form, word => {
    const ask = transactionBatch(plan, chunk, word)
    if (isRefusal(ask)) throw new Error(`broken law: a chunk has its form (${ask.reason} ${ask.field})`)
    return untilSent(
      () => client.call('transaction-batch', ask.request, { jti: ask.jti, timeoutMs: ANSWER_MS_MAX }),
      stop,
    )
  })
}

function endOf({ chunk, refused }: RowChunk, result: Result | undefined): ChunkEnd {
  const end = chunk && result ? answered(chunk, result) : { counts: noCounts(), refused: [] }
  const own = refused.map(
    ({ line, uid, reason, field }): RefusedLine => ({
      line,
      uid,
      outcome: 'REJECTED',
      code: REASONS[reason].code,
      reason,
      field,
    }),
  )
  end.counts.REJECTED += own.length
  return { counts: end.counts, refused: [...end.refused, ...own].sort((a, b) => a.line - b.line) }
}

function answered({ number, lines }: LedgerChunk, result: Result): ChunkEnd {
  const counts = { ...noCounts(), ...result.counts }
  if (result.counts && result.records) {
    const refused = result.records.map(({ line, outcome, code, reason = 'internal', field }) => ({
      line,
      uid: soundId(lines.uidOf(line)),
      outcome,
      code,
      reason,
      field: field?.replace(/^body\./, ''),
    }))
    return { counts, refused }
  }
  if (result.code !== 500) throw refusedChunk(number, result)
  counts.FAILED = lines.count
  const failed = { outcome: 'FAILED', code: 500, reason: 'internal', field: undefined } as const
  const refused = lines.rows().transactions.map(({ line }) => ({ line, uid: soundId(lines.uidOf(line)), ...failed }))
  return { counts, refused }
}

const NEXT: Record<string, string> = {
  batch_extent: 'Another file, or other chunks of it, was begun under this batch id; choose another --batch-id.',
  batch_finished: 'Another file was sent under this batch id; choose another --batch-id.',
  batch_layout: 'Another batch has this id; choose another --batch-id.',
  role_missing: 'Ask the operator to grant the client the role LEDGER_WRITE.',
  field_unknown: UPGRADE_WORKERS,
  entity_forbidden: 'The client’s file names an entity that the client does not act for; ask the operator.',
  jti_reused: 'Another file was sent under this batch id; choose another --batch-id.',
}

function refusedChunk(number: number, { error }: Result): FileError {
  // A worker that doesn't know `columns` also finds too few lines beside them.
  const wrong = reasonsIn(error).find(({ reason }) => reason === 'field_unknown') ?? reasonIn(error)
  const line = `Chunk ${number} was refused: ${wrong.field}: ${textOf(wrong)}`
  return new FileError('input', line, NEXT[wrong.reason] ?? 'Correct that, then run the same command again.')
}

/** Prints a hint if no worker listens after ten seconds, and whenever the queue server goes away. */
function watchForWorkers({ queues, stream }: FileRunDeps, waiting: () => boolean): () => void {
  const tell = tellTo(stream)
  queues.on('away', () => tell('the queue server is away; waiting for it ...'))
  const timer = setTimeout(async () => {
    const listening = await queues.workersOf('transaction-batch').catch(() => undefined)
    if (listening === 0 && waiting())
      tell('no worker listens on transaction-batch; start one with `tokenmill workers`. Waiting ...')
  }, NOBODY_MS)
  timer.unref()
  return () => clearTimeout(timer)
}
