// What a run tells its workers of the whole batch: how many chunks and rows there are, and which file they come from; and
// after how many chunks it stops for now. Standard input shows its extent only at its end.
import { CHUNK_NUMBER_MAX, type Extent } from '../../src/job/envelope/batch-extent.ts'
import { nameOfSource } from '../file-run.ts'
import { chunksOf, countChunks } from '../rows/chunks.ts'
import { type RowOptions, readRows } from '../rows/rows.ts'
import { openSource, type SourceOptions } from '../rows/source.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'

/** A file with rows so long that a chunk may be cut short is read once more. */
export async function measureExtent(
  source: SourceOptions,
  rowOptions: RowOptions,
  file: ValidatedFile,
  chunkRecords: number,
): Promise<Extent> {
  const known = chunksOf(file, chunkRecords)
  const count = known ? { chunks: known, rows: file.rows } : await countAll(source, rowOptions, file, chunkRecords)
  return { ...count, sha256: file.digests.sha256, ...nameOfSource(source.path) }
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

/** Whole chunks that hold `limit` rows; undefined where that is all there is. */
export function limitInChunks(
  limit: number | undefined,
  extent: Pick<Extent, 'chunks'> | undefined,
  chunkRecords: number,
): number | undefined {
  if (limit === undefined) return undefined
  const chunks = Math.min(Math.ceil(limit / chunkRecords), CHUNK_NUMBER_MAX)
  return extent && chunks >= extent.chunks ? undefined : chunks
}
