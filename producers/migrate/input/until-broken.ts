// An input that turns out to be unusable while its rows are being sent: standard input, which can't be read beforehand, or
// a file that changed. What was read before the break counts; nothing after it is read.
import type { RowChunk } from '../../rows/chunks.ts'
import { FileError } from '../../rows/file-error.ts'

export interface UntilBroken {
  /** The chunks before the break. */
  chunks: AsyncIterable<RowChunk>
  /** Why the input can't be read on; undefined if it was read to its end. */
  broken(): FileError | undefined
}

export function untilBroken(chunks: AsyncIterable<RowChunk>): UntilBroken {
  let broken: FileError | undefined
  async function* before(): AsyncGenerator<RowChunk> {
    try {
      yield* chunks
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      broken = error
    }
  }
  return { chunks: before(), broken: () => broken }
}
