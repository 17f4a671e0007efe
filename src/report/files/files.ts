// Where reports' files lie: a folder, or a bucket that speaks S3. A file is written whole or not at all and is never
// changed; which report it belongs to is the store's affair.

import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../config.ts'
import { openDisk } from './disk.ts'
import { openS3 } from './s3.ts'

/** Bytes from `start` to `end`, both included. */
export interface Range {
  start: number
  end: number
}

export interface Stored {
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

export interface FilesOptions {
  /** `file:///folder` or `s3://bucket/prefix`; else `folder`. */
  url: string | undefined
  folder: string
  /** Of a service that isn't AWS's own: paths instead of host names are used for buckets. */
  endpoint?: string | undefined
}

export function openFiles({ url, folder, endpoint }: FilesOptions): ReportFiles {
  if (url === undefined) return openDisk(folder)
  const parsed = new URL(url)
  if (parsed.protocol === 'file:') return openDisk(fileURLToPath(parsed))
  if (parsed.protocol !== 's3:' || parsed.hostname === '')
    throw new ConfigError('REPORTS_URL: must be file:///folder or s3://bucket/prefix')
  return openS3({ bucket: parsed.hostname, prefix: parsed.pathname.replace(/^\/+|\/+$/g, ''), endpoint })
}
