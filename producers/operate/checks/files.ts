// What expires or runs out on this host: certificates of the HTTP roles, clients' keys, disk space for report files.
import { X509Certificate } from 'node:crypto'
import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { listDueLines } from '../../../src/acts/capture-turning.ts'
import * as captureKeys from '../../../src/store/access/capture-keys.ts'
import * as clientUsers from '../../../src/store/access/client-users.ts'
import type { Db } from '../../../src/store/pool.ts'
import { RETENTION } from '../../../src/store/retention.ts'
import { bytes, count, duration } from '../../../src/units.ts'
import { critical, type Verdict, warning, well } from '../check.ts'

const DAY_MS = 86_400_000
const CERTIFICATE_MS = { warning: 21 * DAY_MS, critical: 2 * DAY_MS } as const
const KEY_MS = 14 * DAY_MS
/** Free disk space below this share, or below this many bytes. */
const FREE = { warning: { part: 0.1, bytes: 2 ** 30 }, critical: { part: 0.02, bytes: 100 * 2 ** 20 } } as const
const SHOWN_MAX = 5

export interface EndSources {
  store(): Promise<Db>
  now: number
  tls: { certFile: string } | undefined
  reportsUrl: string | undefined
}

export async function askCertificate({ tls, now }: EndSources): Promise<Verdict> {
  if (!tls) return well('no setting names a certificate')
  const read = await readFile(tls.certFile)
    .then(pem => new X509Certificate(pem))
    .catch(() => undefined)
  if (!read) return critical(`${tls.certFile} can not be read as a certificate`, 'correct TOKENMILL_TLS_CERT')
  const leftMs = Date.parse(read.validTo) - now
  const next = 'renew it and restart the HTTP roles'
  if (leftMs <= 0) return critical(`${tls.certFile} ended ${duration(-leftMs)} ago`, next)
  const says = `${tls.certFile} ends in ${duration(leftMs)}`
  if (leftMs < CERTIFICATE_MS.critical) return critical(says, next)
  return leftMs < CERTIFICATE_MS.warning ? warning(says, next) : well(says)
}

/** Clients' keys. A key gets an end when it is retired; that is a problem only if the client has no other key. */
export async function askKeys({ store, now }: EndSources): Promise<Verdict> {
  const db = await store()
  const senders = await clientUsers.listWithoutKeyAfter(db, now + KEY_MS)
  const captures = await captureKeys.list(db)
  const active = new Set(captures.filter(({ state }) => state === 'ACTIVE').map(({ entityId }) => entityId))
  const without = captures.filter(({ state, entityId }) => state === 'RETIRED' && !active.has(entityId))
  const { inUse, full } = await listDueLines(db, now)
  const words = [
    ...senders
      .slice(0, SHOWN_MAX)
      .map(({ name, endsAt }) => `the last signing key of ${name} ends in ${duration(endsAt - now)}`),
    ...without.slice(0, SHOWN_MAX).map(({ alias, retiredAt }) => {
      const leftMs = (retiredAt ?? now) + RETENTION.captureKeyDays * DAY_MS - now
      return `capture key ${alias} is destroyed in ${duration(Math.max(0, leftMs))}, and its entity has no other`
    }),
  ]
  const turning = [
    ...inUse.slice(0, SHOWN_MAX).map(key => {
      const used = key.lastUsedAt === null ? '' : `, last ${duration(now - key.lastUsedAt)} ago by ${key.lastUsedBy}`
      return `capture key ${captureKeys.captureKeyName(key)} was replaced and is still used${used}`
    }),
    ...full.slice(0, SHOWN_MAX).map(alias => `capture key ${alias} is due and has as many keys as an alias may have`),
  ]
  if (words.length > 0) return warning([...words, ...turning].join('; '), '`client key add`, `capture-key add`')
  if (turning.length > 0)
    return warning(
      turning.join('; '),
      'give the newest key to who uses it (`capture-key show`), then `capture-key retire`',
    )
  return well(
    `no key ends within ${duration(KEY_MS)}; ${count(active.size, 'entity has', 'entities have')} capture keys`,
  )
}

export async function askDisk({ reportsUrl }: EndSources): Promise<Verdict> {
  if (reportsUrl === undefined)
    return warning('REPORTS_URL is not set here: no reports are made or served by this host', 'set REPORTS_URL')
  if (!reportsUrl.startsWith('file:'))
    return well(`report files are in ${new URL(reportsUrl).protocol}//, not on a disk`)
  const folder = fileURLToPath(reportsUrl)
  const disk = await statfs(folder).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown')
  // The first report makes the folder.
  if (disk === 'ENOENT') return well(`${folder} is not made yet`)
  const trouble = typeof disk === 'string' ? `can not be reached (${disk})` : await troubleOf(folder)
  if (typeof disk === 'string' || trouble !== undefined)
    return critical(`${folder} ${trouble}: no report is made`, 'mend the folder of REPORTS_URL, or correct REPORTS_URL')
  const free = disk.bavail * disk.bsize
  const part = free / (disk.blocks * disk.bsize)
  const says = `${bytes(free)} (${Math.floor(part * 100)} %) free in ${folder}`
  const next = 'make room, or lower TOKENMILL_REPORT_DAYS'
  if (part < FREE.critical.part || free < FREE.critical.bytes) return critical(says, next)
  return part < FREE.warning.part || free < FREE.warning.bytes ? warning(says, next) : well(says)
}

/** Why this user can't write reports to the folder; undefined if it can. */
async function troubleOf(folder: string): Promise<string | undefined> {
  if (!(await stat(folder)).isDirectory()) return 'is not a folder'
  const refused = await access(folder, constants.W_OK | constants.X_OK).catch((error: NodeJS.ErrnoException) => error)
  return refused ? `is not writable for this user (${refused.code})` : undefined
}
