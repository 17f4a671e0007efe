// Where reports' files lie: a folder, or a bucket that speaks S3. A file is written whole or not at all and is never
// changed; which report it belongs to is the store's affair.
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
  /** Writes all `pieces`, then shows them under the key that their digest gives. A throw of `pieces` leaves nothing. */
  put(pieces: AsyncIterable<string | Buffer>, keyOf: (sha256: string) => string): Promise<Stored>
  /** Undefined if there is no such file. */
  get(key: string, range?: Range): Promise<Readable | undefined>
  /** One that isn't there is no error. */
  remove(key: string): Promise<void>
  /** Every file, unfinished ones of crashed writers too, with the moment of its last change, ms since the epoch. */
  list(): AsyncIterable<{ key: string; modifiedAt: number }>
  close(): void
}
