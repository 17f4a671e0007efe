// The chunk size of a batch of which neither checkpoint nor manifest is there: the default of this release or, if the batch
// turns out to have been begun with other chunks, that of earlier releases. A run begins again with these; its first chunk
// took no effect.
import { CHUNK } from '../../../src/job/choices.ts'
import type { Result } from '../../../src/job/result.ts'
import type { MigrateOptions } from '../options.ts'
import type { Run } from '../resume.ts'

/** Thrown when the first chunk is refused, the files of the run have been removed, and the batch may have smaller chunks. */
export class OtherChunkSize extends Error {}

/** Whether the batch may have the chunks of earlier releases: nobody says the size, and no chunk was answered in this one. */
export function mayHaveEarlierSize(
  { chunk, file, dryRun }: Pick<MigrateOptions, 'chunk' | 'file' | 'dryRun'>,
  { variant, checkpoint, chunkRecords }: Pick<Run, 'variant' | 'checkpoint' | 'chunkRecords'>,
): boolean {
  // Standard input can't be read again.
  if (chunk !== undefined || dryRun || file === '-' || variant !== 'run') return false
  return chunkRecords === CHUNK.recordsDefault && (checkpoint?.next_chunk ?? 0) === 0
}

/** Whether a first chunk may be refused because of its size: it was sent as another chunk before, or the batch has other ones. */
export function isOfOtherSize({ error }: Result): boolean {
  const code = (field: string) => error?.details?.[field]?.code
  return code('body.jti') === 'jti_reused' || code('body.request.batch_id') === 'batch_layout'
}
