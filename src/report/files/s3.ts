// Report files in an S3 bucket. A report is first written to a temporary file, so that digest and length are known and
// one request uploads it whole. Region and credentials are AWS's usual settings.
import { randomUUID } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { assert, Fault } from '../../errors.ts'
import { isKey } from './file-name.ts'
import type { ReportFiles } from './files.ts'
import { spoolInto } from './spool.ts'

interface S3Options {
  bucket: string
  /** Without slashes at either end. */
  prefix: string
  endpoint?: string | undefined
  /** For how many days nobody can remove a file: object lock in COMPLIANCE mode. */
  lockDays?: number | undefined
}

const CONNECT_MS = 5_000
const IDLE_MS = 60_000

/** The S3 package is loaded at first use: every command has the setting, but few commands use the files. */
export async function openClient(endpoint: string | undefined) {
  const sdk = await import('@aws-sdk/client-s3')
  const client: S3Client = new sdk.S3Client({
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts: 3,
    retryMode: 'standard',
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: IDLE_MS, throwOnRequestTimeout: true },
    // tokenmill sends the digest itself, and checks it when the file is read.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  return { client, sdk }
}

export function openS3({ bucket: Bucket, prefix, endpoint, lockDays }: S3Options): ReportFiles {
  let opened: ReturnType<typeof openClient> | undefined
  const reached = () => {
    opened ??= openClient(endpoint)
    return opened
  }
  const folder = prefix === '' ? '' : `${prefix}/`
  const nameOf = (key: string) => {
    assert(isKey(key), 'a file of a report has a plain name')
    return folder + key
  }
  return {
    async put(pieces, keyOf) {
      const path = join(tmpdir(), `tokenmill-report-${randomUUID()}`)
      const file = await open(path, 'wx+', 0o600)
      let body: Readable | undefined
      try {
        // The file has no name any more: whatever ends this process, no copy is left.
        await rm(path)
        const { bytes, sha256 } = await spoolInto(file, pieces)
        body = file.createReadStream({ start: 0 })
        const key = keyOf(sha256)
        const { client, sdk } = await reached()
        await reach(
          client.send(
            new sdk.PutObjectCommand({
              Bucket,
              Key: nameOf(key),
              Body: body,
              ContentLength: bytes,
              ChecksumSHA256: Buffer.from(sha256, 'hex').toString('base64'),
              ...lockFor(lockDays),
            }),
          ),
        )
        return { key, bytes, sha256 }
      } finally {
        body?.destroy()
        await file.close()
      }
    },
    async get(key, range) {
      const name = nameOf(key)
      const { client, sdk } = await reached()
      const found = await reach(
        client
          .send(
            new sdk.GetObjectCommand({
              Bucket,
              Key: name,
              ...(range ? { Range: `bytes=${range.start}-${range.end}` } : {}),
            }),
          )
          .catch(error => {
            if (!(error instanceof sdk.NoSuchKey)) throw error
          }),
      )
      return found?.Body as Readable | undefined
    },
    async remove(key) {
      const name = nameOf(key)
      const { client, sdk } = await reached()
      await reach(client.send(new sdk.DeleteObjectCommand({ Bucket, Key: name })))
    },
    async *list() {
      const { client, sdk } = await reached()
      let token: string | undefined
      do {
        const page = await reach(
          client.send(
            new sdk.ListObjectsV2Command({ Bucket, Prefix: folder, ...(token ? { ContinuationToken: token } : {}) }),
          ),
        )
        for (const { Key = '', LastModified } of page.Contents ?? []) {
          const key = Key.slice(folder.length)
          if (isKey(key)) yield { key, modifiedAt: LastModified?.getTime() ?? 0 }
        }
        token = page.NextContinuationToken
      } while (token)
    },
    close() {
      opened?.then(({ client }) => client.destroy()).catch(() => {})
    },
  }
}

function lockFor(days: number | undefined) {
  if (days === undefined) return {}
  return { ObjectLockMode: 'COMPLIANCE' as const, ObjectLockRetainUntilDate: new Date(Date.now() + days * 86_400_000) }
}

async function reach<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw new Fault('files_away', error)
  }
}
