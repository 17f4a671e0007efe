// The place of report files: a folder, or an S3 bucket. A file is written whole or not at all and never changes; the
// store says which report it belongs to.
import type { Readable } from 'node:stream'

/** Bytes from `start` to `end`, both included. */
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

/** Every method throws `Fault('files_away')` where the place can't be reached. */
export interface ReportFiles {
  /** Writes all `pieces`, then shows the file under the key of its digest. If `pieces` throws, nothing is left. */
  put(pieces: AsyncIterable<string | Buffer>, keyOf: (sha256: string) => string): Promise<Stored>
  /** Undefined if there is no such file. */
  get(key: string, range?: Range): Promise<Readable | undefined>
  /** A missing file is no error. */
  remove(key: string): Promise<void>
  /** Every file, unfinished ones of crashed writers too, with the moment of its last change, ms since the epoch. */
  list(): AsyncIterable<{ key: string; modifiedAt: number }>
  close(): void
}
