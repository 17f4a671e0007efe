// Opens the place of files that a setting names (REPORTS_URL, AUDIT_URL): a folder, or an S3 bucket.
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../config.ts'
import { openDisk } from './disk.ts'
import type { ReportFiles } from './files.ts'
import { openS3 } from './s3.ts'

interface FilesOptions {
  /** `file:///folder` or `s3://bucket/prefix`. */
  url: string
  /**
   * The endpoint of an S3 service other than AWS's; with it, URLs name the bucket in the path and not in the host name.
   */
  endpoint?: string | undefined
  /** For how many days files in a bucket are locked. */
  lockDays?: number
  /** The setting that names the place. */
  setting?: string
}

export function openFiles({ url, endpoint, lockDays, setting = 'REPORTS_URL' }: FilesOptions): ReportFiles {
  const parsed = new URL(url)
  if (parsed.protocol === 'file:') return openDisk(fileURLToPath(parsed))
  if (parsed.protocol !== 's3:' || parsed.hostname === '')
    throw new ConfigError(`${setting}: must be file:///folder or s3://bucket/prefix`)
  return openS3({ bucket: parsed.hostname, prefix: parsed.pathname.replace(/^\/+|\/+$/g, ''), endpoint, lockDays })
}
