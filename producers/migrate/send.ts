// Sends chunks, of which a bounded number is unanswered, and writes the answers in order. The client library sends an unanswered chunk again; here it is only awaited.

import type { Result } from '../../src/job/answer/result.ts'
import type { Extent } from '../../src/job/envelope/batch-extent.ts'
import { type Counts, sumOf } from '../../src/job/outcome.ts'
import type { BlockForm } from '../../src/job/record-columns.ts'
import { openAnswerDeadline, tellTo } from '../answer-deadline.ts'
import { touchedBy } from '../batch/order.ts'
import { sendChunk } from '../batch/send-chunk.ts'
import { type RecordForm, sendInForm } from '../client/in-form.ts'
import { type Limits, openWindow, type WaitingEnds } from '../client/window.ts'
import { type Client, ClosedError } from '../client.ts'
import type { FileRunDeps } from '../file-run.ts'
import { chunkIn, type RowChunk } from '../rows/chunks.ts'
import { jsonOf } from '../rows/column-record.ts'
import { FileError } from '../rows/file-error.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import type { Row } from '../rows/record.ts'
import type { BatchPlan } from '../token-batch.ts'
import { rowsOf } from './chunk/ended-rows.ts'
import { firstMaxOf, KNOWN_END, openEnd } from './input/open-end.ts'
import { tellOfAway, tellOfSilence, watchForWorkers } from './input/silence.ts'
import { untilBroken } from './input/until-broken.ts'
import { type MigrateOptions, policyOf } from './options.ts'
import type { ChunkEnd, CountedRow, Output } from './output.ts'
import { hopelessReason } from './refused-chunk.ts'
import { type SchemePart, withSchemeTokens } from './scheme-tokens.ts'

interface RunIdentity {
  batchId: string
  chunkRecords: number
  startedAt: number
  /** Undefined for standard input. */
  extent: Extent | undefined
  /** The run stops after this many chunks. */
  limit: number | undefined
  /** Decides between data of the same source time. */
  inputSha256: string
  form: RecordForm
}

/** How long an answer is awaited: longer than any job may wait for its start. */
const ANSWER_MS_MAX = 8 * 86_400_000

/** What a run writes. `E`: what it writes of a chunk. */
interface Sink<E> extends Pick<Output, 'counts' | 'nextChunk' | 'rowsBefore' | 'discard'> {
  endOf(chunk: RowChunk, rows: FileRow[]): E
  write(end: E): Promise<void>
}

export interface Sending<E extends ChunkEnd> {
  options: MigrateOptions
  plan: RunIdentity
  client: Client
  deps: FileRunDeps
  output: Sink<E>
  /** Where what will be written waits for an older chunk; without it no more chunks are sent meanwhile. */
  waiting?: WaitingEnds<E>
  /** Takes the rows that were written last. */
  onProgress: (rows: readonly CountedRow[]) => void
  /** Takes the oldest unanswered chunk while later ones wait for it; undefined once none do. */
  onAwaited?: (chunk: RowChunk | undefined) => void
}

/** Why a run stopped before the end of its file: as its options asked, or because the file can't be read on. */
export type Stopped = 'limit' | 'rejected' | 'input'

interface Sum {
  complete: boolean
  rows: number
  stopped: Stopped | undefined
  /** Why the file can't be read on. */
  broken: FileError | undefined
}

export async function sendChunks<E extends ChunkEnd>(
  chunks: AsyncIterable<RowChunk>,
  { options, plan, client, deps, output, waiting, onProgress, onAwaited = () => {} }: Sending<E>,
): Promise<Sum> {
  const { inFlight } = options
  const touched = touchedBy({ kind: options.recordKind, policy: policyOf(options, plan.inputSha256) })
  const unwritten = waiting ? undefined : inFlight
  const inFlightFirst = Math.min(inFlight, firstMaxOf(options.file))
  const skipped = output.nextChunk
  let rows = 0
  let complete = true
  let stopped: Stopped | undefined
  const input = untilBroken(chunks)
  const window = openWindow<RowChunk, Result | undefined, E>({
    limits: () => limitsNow(),
    waiting,
    touched: touched && (({ rows }) => touched(requestsIn(rows))),
    async endOf(chunk, result) {
      const hopeless = result && chunk.number === 0 ? hopelessReason(result) : undefined
      if (hopeless) {
        await output.discard()
        throw hopeless
      }
      return output.endOf(chunk, rowsOf(chunk, result, plan))
    },
    async write(end) {
      await output.write(end)
      openEnded.see(end.number, end.rows)
      onAwaited(window.awaited())
      onProgress(end.rows)
      if (isOverMax(options.rejectedMax, output.counts)) stopped = 'rejected'
    },
  })
  const sendWatched = (chunk: RowChunk): Promise<Result | undefined> => {
    const answer = send(chunk, sending)
    return answer ? answerDeadline.watch(answer) : Promise.resolve(undefined)
  }
  /** Sends a chunk that was answered before, and throws if it isn't the same one. */
  const sendAgain = async (chunk: RowChunk) => {
    return rowsOf(chunk, await sendWatched(chunk), plan)
  }
  /**
   * Until the first chunk is written, few are in flight: its answer may show that all rows will be refused.
   */
  const limitsNow = (): Limits => {
    const isFirst = output.nextChunk === skipped
    return isFirst ? { unanswered: inFlightFirst, unwritten: inFlightFirst } : { unanswered: inFlight, unwritten }
  }
  const sendNext = async (chunk: RowChunk) => {
    await window.room(chunk)
    const answer = sendWatched(chunk)
    const see = () => onAwaited(window.awaited())
    window.push(chunk, answer)
    answer.then(see, see)
  }
  const { stop, giveUpAfterMs } = deps
  const onEnd = () => client.close()
  const tell = tellTo(deps.stream)
  const sending = { options, plan, client, deps, tell: once(tell) }
  const answerDeadline = openAnswerDeadline({ stop, giveUpAfterMs, onEnd, tell })
  const openEnded = plan.extent ? KNOWN_END : openEnd({ passed: output.rowsBefore, dryRun: options.dryRun, sendAgain })
  const stopWatching = watchForWorkers(deps, () => window.size() > 0)
  const stopTelling = tellOfSilence(tell, () => window.size() > 0 && output.nextChunk === skipped)
  const stopTellingAway = tellOfAway(deps, tell)
  try {
    for await (const chunk of input.chunks) {
      stopped ??= limitBefore(chunk, plan)
      if (deps.stop.aborted || stopped) {
        complete = false
        break
      }
      rows += chunk.rows.length
      openEnded.take(chunk)
      if (chunk.position >= skipped) await sendNext(chunk)
    }
    await window.drain()
    if (input.broken()) stopped = 'input'
    complete &&= !input.broken()
    if (complete) await openEnded.end(rows)
  } catch (error) {
    // The client was closed at the answer deadline. The next run sends the unanswered chunks again.
    if (!(error instanceof ClosedError)) throw error
    complete = false
    stopped = unlessLimit(stopped)
  } finally {
    answerDeadline.close()
    stopTelling()
    stopTellingAway()
    stopWatching()
  }
  return { complete, rows, stopped: complete ? undefined : stopped, broken: input.broken() }
}

function* requestsIn(rows: readonly Row[]): Generator<object> {
  for (const row of rows) {
    if (row.rejected !== undefined || row.skipped !== undefined) continue
    yield (JSON.parse(jsonOf(row)) as { request: object }).request
  }
}

/** What a run needs to send its chunks. `tell` writes each line only once. */
type ChunkSending = Omit<Sending<ChunkEnd>, 'output' | 'waiting' | 'onProgress' | 'onAwaited'> &
  Pick<SchemePart, 'tell'>

function once(tell: (line: string) => void): (line: string) => void {
  const told = new Set<string>()
  return line => {
    if (!told.has(line)) tell(line)
    told.add(line)
  }
}

function send(chunk: RowChunk, sending: ChunkSending): Promise<Result> | undefined {
  const { number } = chunk
  if (number === undefined) return undefined
  return sendInForm(sending.plan.form, form => sendOnce(chunk, number, form, sending))
}

/** Whether this is the last chunk that is sent. Without the extent that isn't certain: only skipped rows may follow. */
function isLastSent(number: number, { isLast }: RowChunk, { plan }: ChunkSending): boolean {
  return plan.extent ? number + 1 === plan.extent.chunks : isLast
}

function schemePartOf({ number, isLast }: { number: number; isLast: boolean }, sending: ChunkSending): SchemePart {
  const { tell, deps } = sending
  return { plan: batchOf(sending), chunk: number, isLast, timeoutMs: ANSWER_MS_MAX, stop: deps.stop, tell }
}

function batchOf({ options, plan, deps }: ChunkSending): BatchPlan {
  return {
    batchId: plan.batchId,
    recordKind: options.recordKind,
    tokenScope: options.scope,
    acceptedAt: Math.floor(plan.startedAt / 1000),
    policy: policyOf(options, plan.inputSha256),
    dryRun: options.dryRun,
    chunkRecords: plan.chunkRecords,
    extent: plan.extent,
    limit: plan.limit,
    captureKey: blockKeyOf(deps.credentials),
  }
}

async function sendOnce(chunk: RowChunk, number: number, form: BlockForm, sending: ChunkSending): Promise<Result> {
  const { options, client, deps } = sending
  const isLast = isLastSent(number, chunk, sending)
  const sent = { ...chunkIn(form, chunk), number, isLast: isLast && !options.dryRun }
  // Scheme tokens are asked for by the records. The result may be in columns nevertheless, if an earlier run asked so.
  const given = { timeoutMs: ANSWER_MS_MAX, resultColumns: !options.schemeTokens, stop: deps.stop }
  const result = await sendChunk(client, batchOf(sending), sent, given)
  if (!options.schemeTokens || options.dryRun) return result
  return withSchemeTokens(result, schemePartOf({ number, isLast }, sending), client)
}

/** Rows before the limit are unanswered, so it isn't the limit at which the run stopped. */
function unlessLimit(stopped: Stopped | undefined): Stopped | undefined {
  return stopped === 'limit' ? undefined : stopped
}

function limitBefore({ number }: RowChunk, { limit }: RunIdentity): Stopped | undefined {
  return limit !== undefined && number !== undefined && number >= limit ? 'limit' : undefined
}

/** From this many rows on a share of rejected rows is judged; the share of fewer rows says little. */
const SHARE_ROWS_MIN = 1_000

export function isOverMax(most: MigrateOptions['rejectedMax'], counts: Counts): boolean {
  if (most === undefined) return false
  if ('rows' in most) return counts.REJECTED > most.rows
  const answered = sumOf(counts)
  return answered >= SHARE_ROWS_MIN && counts.REJECTED > most.share * answered
}

/** Blocks are JWEs: the client's file must name a JWE key. */
function blockKeyOf({ captureKeys }: FileRunDeps['credentials']) {
  if (captureKeys.jwe) return captureKeys.jwe
  throw new FileError(
    'usage',
    'The client’s file names no JWE capture key.',
    'Ask the operator for one: `tokenmill capture-key add ALIAS --entity UUID --type jwe-rsa`.',
  )
}
