// Where segments go: a folder, or an S3 bucket with object lock. Without AUDIT_URL it is a folder of the data directory.
import { hostname } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import type { ReportFiles } from '../report/files/files.ts'
import { hasObjectLock } from '../report/files/object-lock.ts'
import { openFiles } from '../report/files/open.ts'
import { segmentName, segmentOf } from './segment.ts'

export interface AuditPlace {
  /** True if `AUDIT_URL` names the place. If not, the place is a folder of this host and no act waits for it. */
  isOutside: boolean
  /** Where it is, for people: the URL without its user and query, or this host. */
  name: string
  /** Throws `Fault('files_away')` if the place can't be reached. */
  put(segment: number, lines: Iterable<string>): Promise<void>
  /** The names of the segments by their numbers. Several names: several files claim the number. */
  list(): Promise<Map<number, string[]>>
  read(name: string): Promise<string>
  close(): void
}

export interface PlaceOptions {
  /** Undefined: the folder of the data directory. */
  auditUrl: string | undefined
  dataDir: string
  /** The endpoint of an S3 service other than AWS. */
  endpoint: string | undefined
}

/**
 * In a bucket a segment is locked for as long as the store keeps a row, so that a row can be read there until the store
 * removes it.
 */
const LOCK_DAYS = 400

export function ownAuditUrl(dataDir: string): string {
  return pathToFileURL(join(dataDir, 'audit')).href
}

export function openAuditPlace({ auditUrl, dataDir, endpoint }: PlaceOptions): AuditPlace {
  const url = auditUrl ?? ownAuditUrl(dataDir)
  const files = openFiles({ url, endpoint, lockDays: LOCK_DAYS, setting: 'AUDIT_URL' })
  return { isOutside: auditUrl !== undefined, name: nameOf(auditUrl), ...placeOf(files) }
}

function nameOf(auditUrl: string | undefined): string {
  if (auditUrl === undefined) return hostname()
  const { protocol, host, pathname } = new URL(auditUrl)
  return `${protocol}//${host}${pathname}`
}

/**
 * Throws `ConfigError` if the place is a bucket without object lock. A bucket that can't be reached counts as one with
 * object lock.
 */
export async function assertLocked({ auditUrl, endpoint }: Pick<PlaceOptions, 'auditUrl' | 'endpoint'>): Promise<void> {
  if (!auditUrl?.startsWith('s3:')) return
  const { hostname: bucket } = new URL(auditUrl)
  const locked = await hasObjectLock({ bucket, endpoint }).catch(error => {
    if (error instanceof Fault) return true
    throw error
  })
  if (!locked)
    throw new ConfigError(
      `AUDIT_URL: the bucket ${bucket} has no object lock, so that segments could be removed; make a bucket with object lock enabled`,
    )
}

function placeOf(files: ReportFiles): Omit<AuditPlace, 'isOutside' | 'name'> {
  return {
    async put(segment, lines) {
      await files.put(piecesOf(lines), sha256 => segmentName(segment, sha256))
    },
    async list() {
      const found = new Map<number, string[]>()
      for await (const { key } of files.list()) {
        const segment = segmentOf(key)
        if (segment !== undefined) found.set(segment, [...(found.get(segment) ?? []), key])
      }
      return new Map([...found].sort(([a], [b]) => a - b))
    },
    async read(name) {
      const stream = await files.get(name)
      if (!stream) throw new Fault('files_away')
      return (await buffer(stream)).toString('utf8')
    },
    close: () => files.close(),
  }
}

async function* piecesOf(lines: Iterable<string>): AsyncGenerator<string> {
  yield* lines
}
