// What a run over standard input must see to, because it can neither read its input beforehand nor know its end: that it
// goes on with the input of the earlier run, and that workers learn which chunk was the last.
import type { RowChunk } from '../../rows/chunks.ts'
import { FileError } from '../../rows/file-error.ts'
import type { FileRow } from '../../rows/outcome/result-row.ts'

type Ended = Pick<FileRow, 'outcome'>

export interface OpenEnd {
  /** Takes each chunk before it is sent or passed over. */
  take(chunk: RowChunk): void
  /** Takes the results of a chunk's rows, as they were written. */
  see(number: RowChunk['number'], ends: readonly Ended[]): void
  /** Call it at the end of the input, once all chunks are answered. `rows`: all rows of the input. Throws a FileError. */
  end(rows: number): Promise<void>
}

export interface OpenEndOptions {
  /**
   * How many rows this run passes over. The chunk after them was answered before; a worker compares its digest with the
   * receipt's.
   */
  passed: number
  dryRun: boolean
  /** Sends a chunk that was answered before; rejects if it isn't the same one. Returns the results of its rows. */
  sendAgain(chunk: RowChunk): Promise<readonly FileRow[]>
}

/** For a file, whose content and extent are known. */
export const KNOWN_END: OpenEnd = { take: () => {}, see: () => {}, end: async () => {} }

export function openEnd({ passed, dryRun, sendAgain }: OpenEndOptions): OpenEnd {
  /** The last chunk that a worker has or gets. */
  let last: RowChunk | undefined
  let written: readonly Ended[] = []
  return {
    take(chunk) {
      if (chunk.number !== undefined) last = chunk
    },
    see(number, ends) {
      if (number !== undefined) written = ends
    },
    async end(rows) {
      if (passed > 0 && rows <= passed) throw tooShort()
      if (!last || last.isLast || dryRun) return
      // Only skipped rows came after it. A worker decides its failed rows again.
      const ends = await sendAgain({ ...last, isLast: true })
      if (ends.some(({ outcome }, index) => outcome !== written[index]?.outcome)) throw endedOtherwise()
    },
  }
}

/**
 * How many chunks are sent before the first one is answered, because its answer may show that all rows will be refused.
 * For a file they are enough to keep workers busy. For standard input it is one, because the answer also shows whether
 * this is the input of the earlier run.
 */
export function firstMaxOf(file: string): number {
  return file === '-' ? 1 : 4
}

function tooShort(): FileError {
  const wrong = 'The input ends before the rows that the earlier run of this batch has done.'
  return new FileError('input', wrong, 'Give the whole input again, or choose another --batch-id and --results.')
}

function endedOtherwise(): FileError {
  const wrong = 'Rows of the last chunk that had failed were decided again, and the results don’t say so yet.'
  return new FileError('input', wrong, 'Run the same command again, with the whole input.')
}
