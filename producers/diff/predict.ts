// What each row of a file would do, as workers predict it from the store: a dry run that writes no files.
import { resultsQueue } from '../../src/job/catalogue.ts'
import { CHUNK } from '../../src/job/choices.ts'
import { tellTo } from '../answer-deadline.ts'
import { connect } from '../client.ts'
import { discardAnswers, type FileRunDeps } from '../file-run.ts'
import { batchIdOf, replyToOf } from '../migrate/batch-identity.ts'
import { measureExtent } from '../migrate/extent.ts'
import type { MigrateOptions } from '../migrate/options.ts'
import { type Sending, sendChunks } from '../migrate/send.ts'
import { openProgress } from '../progress.ts'
import { begun, cutRows } from '../rows/chunks.ts'
import { type FileCounts, noFileCounts } from '../rows/file-outcome.ts'
import { type RowOptions, readRows } from '../rows/file-rows.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import type { Row } from '../rows/rows.ts'
import { openSource, type SourceOptions } from '../rows/source.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'

export interface PredictedFile {
  /** The options of the dry run. */
  options: MigrateOptions
  source: SourceOptions
  rowOptions: RowOptions
  file: ValidatedFile
}

/** Called in the order of the file. `ends`: the outcomes of the rows `given`. */
export type See = (ends: readonly FileRow[], given: readonly Row[]) => void

/** False if the run stopped before the end. Throws the FileError at which the file can't be read on. */
export async function predict(
  { options, source, rowOptions, file }: PredictedFile,
  deps: FileRunDeps,
  see: See,
): Promise<boolean> {
  const batchId = batchIdOf(options, file.digests)
  const replyTo = replyToOf(batchId)
  const { queues, credentials, log, clock, checkKey, stream, resendMs } = deps
  await discardAnswers(deps, replyTo)
  const client = await connect({
    queues,
    credentials,
    replyTo,
    log,
    clock,
    checkKey,
    tell: tellTo(stream),
    ...(resendMs === undefined ? {} : { resendMs }),
  })
  const output = openSight(see)
  const progress = openProgress({ stream, clock, total: file.rows })
  try {
    const input = await openSource(source, file.digests)
    const { chunk: chunkRecords = CHUNK.recordsDefault } = options
    const chunks = await begun(cutRows(readRows(input.bytes, rowOptions), chunkRecords))
    const extent = await measureExtent(source, rowOptions, file, chunkRecords)
    const run = { batchId, chunkRecords, startedAt: clock(), extent, limit: undefined }
    const plan = {
      ...run,
      form: { now: 'rows' as const, isFixed: true as const },
      inputSha256: file.digests.sha256,
    }
    const onProgress = () => progress.update(output.counts)
    const sent = await sendChunks(chunks.all, { options, plan, client, deps, output, onProgress })
    if (sent.broken) throw sent.broken
    return sent.complete
  } finally {
    progress.stop()
    await client.close()
    await queues.obliterate(resultsQueue(client.clientId, replyTo)).catch(() => {})
  }
}

interface SeenChunk {
  number: number | undefined
  rows: FileRow[]
  given: readonly Row[]
}

function openSight(see: See): Sending<SeenChunk>['output'] {
  const counts: FileCounts = noFileCounts()
  let nextChunk = 0
  return {
    counts,
    rowsBefore: 0,
    get nextChunk() {
      return nextChunk
    },
    endOf: ({ number, rows: given }, rows) => ({ number, rows, given }),
    async write({ rows, given }) {
      see(rows, given)
      for (const { outcome } of rows) counts[outcome] += 1
      nextChunk += 1
    },
    discard: async () => {},
  }
}
