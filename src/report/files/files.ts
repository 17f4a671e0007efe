// The interface of the place of report files: a folder, or an S3 bucket. A file is written as a whole or not at all,
// and never changes. The store knows which report a file belongs to.
import type { Readable } from 'node:stream'

/** The bytes from `start` to `end`; both are included. */
export interface Range {
  start: number
  end: number
}

interface Stored {
  key: string
  bytes: number
  /** Hexadecimal. */
  sha256: string
}

/** Every method throws `Fault('files_away')` if the place can't be reached. */
export interface ReportFiles {
  /**
   * Writes all `pieces`; only then the file exists, under the key made from its digest. If `pieces` throws, nothing is
   * left.
   */
  put(pieces: AsyncIterable<string | Buffer>, keyOf: (sha256: string) => string): Promise<Stored>
  /** Undefined if there is no such file. */
  get(key: string, range?: Range): Promise<Readable | undefined>
  /** Removes a file; a missing file is no error. */
  remove(key: string): Promise<void>
  /** Lists every file, also unfinished ones of crashed writers. `modifiedAt`: its last change, ms since the epoch. */
  list(): AsyncIterable<{ key: string; modifiedAt: number }>
  close(): void
}
