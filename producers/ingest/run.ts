// `tokenmill ingest transactions`: a file of transactions becomes chunks on the queue, and its refused rows become a
// results file. The same command may run again wherever it ended: chunks that were done are answered from their
// receipts, and lines that are in the ledger stay as they are. The worker checks the content of lines.
import { createHash } from 'node:crypto'
import { assert } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { addReason, type ReasonCounts } from '../../src/job/chunk-outcomes.ts'
import type { Extent } from '../../src/job/envelope/batch-extent.ts'
import { type Counts, noCounts, sumOf } from '../../src/job/outcome.ts'
import { tellTo } from '../answer-deadline.ts'
import { type Client, connect } from '../client.ts'
import { checkBatchId, discardAnswers, type FileRunDeps, nameOfSource } from '../file-run.ts'
import { type Awaited, openProgress, watchAwaited } from '../progress.ts'
import { FileError } from '../rows/file-error.ts'
import { type Format, formatOf } from '../rows/input-format.ts'
import { openEarlyWord } from '../rows/outcome/early-word.ts'
import type { SegmentDigests } from '../rows/segments.ts'
import { openSource, validateSource } from '../rows/source.ts'
import { cutRows, type LedgerExtent, measureRows } from './chunks.ts'
import type { ColumnOptions } from './columns.ts'
import { openResults } from './results.ts'
import { sendChunks } from './send.ts'

export interface IngestOptions extends ColumnOptions {
  file: string
  format?: Format | undefined
  /** The path of the file of refused lines; default FILE.results.csv. */
  results?: string | undefined
  /** Number of lines per job. */
  chunk: number
  /** How many chunks may be sent beyond the first unanswered one. */
  inFlight: number
  /** Default: computed from the file's digest and the options that decide how the file is read. */
  batchId?: string | undefined
}

export interface IngestSummary {
  batchId: string
  rows: number
  counts: Counts
  results: string
  /** False: the run stopped before the end. Run the same command to continue. */
  complete: boolean
  ms: number
}

/**
 * Ingests a file. Throws a FileError if file, disk or options make the run impossible, `KeyNotLiveError` if no worker
 * will answer.
 */
export async function ingest(options: IngestOptions, deps: FileRunDeps): Promise<IngestSummary> {
  if (options.file === '-') {
    throw new FileError('usage', 'A ledger is read twice, so it is not read from standard input.', 'Give a file.')
  }
  checkBatchId(options.batchId, deps.credentials)
  const began = deps.clock()
  const source = { path: options.file, decryptKeyFile: undefined, passphrase: undefined, verifyKeyFile: undefined }
  const rowOptions = { ...options, format: formatOf(options.file, options.format) }
  const { digests, checked } = await validateSource(source, bytes => measureRows(bytes, rowOptions, options.chunk))
  const batchId = batchIdOf(options, digests)
  const replyTo = `l${createHash('sha256').update(batchId).digest('hex').slice(0, 24)}`
  const path = options.results ?? `${options.file}.results.csv`
  const results = await openResults(path)
  const { queues, credentials, log, clock, checkKey: lookUp } = deps
  const tell = tellTo(deps.stream)
  const resend = deps.resendMs === undefined ? {} : { resendMs: deps.resendMs }
  const counts = noCounts()
  const reasons: ReasonCounts = {}
  const earlyWord = openEarlyWord(tell)
  let awaited: Awaited | undefined
  const late = { text: () => awaited?.text() ?? '', stop: () => awaited?.stop() }
  const progress = openProgress({ stream: deps.stream, clock, total: checked.total, awaited: late })
  let client: Client | undefined
  let complete = false
  try {
    await discardAnswers(deps, replyTo)
    client = await connect({ queues, credentials, replyTo, log, clock, checkKey: lookUp, tell, ...resend })
    awaited = watchAwaited({ queues, client, clock })
    const input = await openSource(source, digests)
    const chunks = cutRows(input.bytes, rowOptions, options.chunk)
    const plan = { batchId, inFlight: options.inFlight, extent: extentOf(options.file, digests, checked) }
    const sent = await sendChunks(chunks, plan, client, deps, async end => {
      for (const [outcome, n] of Object.entries(end.counts)) counts[outcome as keyof Counts] += n
      for (const { outcome, reason } of end.refused) addReason(reasons, outcome, reason, 1)
      await results.write(end.refused)
      progress.update(counts)
      earlyWord.see(counts, reasons)
    })
    if (sent.complete) await results.complete()
    complete = sent.complete
    const sum = sumOf(counts)
    assert(!complete || sum === sent.rows, `${sent.rows} rows were read and ${sum} answered`)
    return { batchId, rows: sum, counts, results: path, complete, ms: clock() - began }
  } finally {
    progress.stop()
    if (!complete) await results.discard()
    await client?.close()
    if (client && complete) await queues.obliterate(resultsQueue(client.clientId, replyTo)).catch(() => {})
  }
}

/** The extent of the batch; undefined if no row of the file can be sent. */
function extentOf(file: string, { sha256 }: SegmentDigests, { chunks, rows }: LedgerExtent): Extent | undefined {
  return chunks === 0 ? undefined : { chunks, rows, sha256, ...nameOfSource(file) }
}

/**
 * The batch's id. The default depends on the chunk size, because a chunk's number must mean the same lines in every
 * run.
 */
function batchIdOf({ batchId, chunk, map, ignoreUnknown, format }: IngestOptions, { sha256 }: SegmentDigests): string {
  if (batchId !== undefined) return batchId
  const deciding = JSON.stringify([sha256, chunk, map ?? {}, ignoreUnknown ?? false, format ?? null])
  return `l-${createHash('sha256').update(deciding).digest('hex').slice(0, 32)}`
}
