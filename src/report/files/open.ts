// Opens the place of report files that a setting names: a folder, or an S3 bucket.
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../config.ts'
import { openDisk } from './disk.ts'
import type { ReportFiles } from './files.ts'
import { openS3 } from './s3.ts'

interface FilesOptions {
  /** `file:///folder` or `s3://bucket/prefix`. */
  url: string
  /** Of a service that isn't AWS's own: paths instead of host names are used for buckets. */
  endpoint?: string | undefined
}

export function openFiles({ url, endpoint }: FilesOptions): ReportFiles {
  const parsed = new URL(url)
  if (parsed.protocol === 'file:') return openDisk(fileURLToPath(parsed))
  if (parsed.protocol !== 's3:' || parsed.hostname === '')
    throw new ConfigError('REPORTS_URL: must be file:///folder or s3://bucket/prefix')
  return openS3({ bucket: parsed.hostname, prefix: parsed.pathname.replace(/^\/+|\/+$/g, ''), endpoint })
}
