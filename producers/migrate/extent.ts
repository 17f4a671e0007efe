// What a run tells its workers about the whole batch: the number of chunks and rows, the name of the file, and, with
// `--limit`, after how many chunks this run stops. The extent of standard input is known only at its end.
import { CHUNK_NUMBER_MAX, type Extent } from '../../src/job/envelope/batch-extent.ts'
import { nameOfSource } from '../file-run.ts'
import { countChunks, extentOf } from '../rows/chunks.ts'
import { type RowOptions, readRows } from '../rows/file-rows.ts'
import { openSource, type SourceOptions } from '../rows/source.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'

/**
 * The extent of a file. If its rows are so long, or so many of them are skipped, that a chunk may hold fewer rows than
 * usual, the file is read once more to count chunks.
 */
export async function measureExtent(
  source: SourceOptions,
  rowOptions: RowOptions & { migration?: string | undefined },
  file: ValidatedFile,
  chunkRecords: number,
): Promise<Extent> {
  const known = extentOf(file, chunkRecords)
  const count = known ?? (await countAll(source, rowOptions, file, chunkRecords))
  return { ...count, sha256: file.digests.sha256, ...nameOfSource(source.path, rowOptions.migration) }
}

async function countAll(
  source: SourceOptions,
  rowOptions: RowOptions,
  { digests }: ValidatedFile,
  chunkRecords: number,
): Promise<Pick<Extent, 'chunks'> & { rows: number }> {
  const { bytes } = await openSource(source, digests)
  return countChunks(readRows(bytes, rowOptions), chunkRecords)
}

/**
 * The number of whole chunks that hold `limit` rows, rounded up; undefined without a limit, or if that is the whole
 * file.
 */
export function limitInChunks(
  limit: number | undefined,
  extent: Pick<Extent, 'chunks'> | undefined,
  chunkRecords: number,
): number | undefined {
  if (limit === undefined) return undefined
  const chunks = Math.min(Math.ceil(limit / chunkRecords), CHUNK_NUMBER_MAX)
  return extent && chunks >= extent.chunks ? undefined : chunks
}
