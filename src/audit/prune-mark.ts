// The mark in the row that says what retention removed from the audit: the last row's number and hash, with a MAC, so that
// nobody without the vault's key can say it.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import * as auditSearch from '../store/access/audit-search.ts'
import type { Db } from '../store/pool.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { NO_HASH } from './row-hash.ts'
import { isMac, type Macs } from './row-mac.ts'

export const PRUNE = 'audit.prune'
/** How long rows stay in the store: twelve months and a margin. */
export const AUDIT_DAYS = 400

export interface Pruned {
  seq: number
  hash: Buffer
}

const PruneMark = z.object({ to: z.int().positive(), hash: z.string(), mac: z.string(), key_version: z.int() })

const digestOf = (to: number, hash: string) => createHash('sha256').update(`audit.prune ${to} ${hash}`).digest()

export function markPruned(
  ring: Pick<KeyRing, 'auditMac'>,
  last: { seq: number; hash: Buffer },
): z.infer<typeof PruneMark> {
  const hash = last.hash.toString('hex')
  const { mac, keyVersion } = ring.auditMac(digestOf(last.seq, hash))
  return { to: last.seq, hash, mac: mac.toString('hex'), key_version: keyVersion }
}

/** The last pruned row; undefined unless the vault's key made the mark. */
function readPruned(ring: Macs, detail: Record<string, unknown>): Pruned | undefined {
  const mark = PruneMark.safeParse(detail).data
  if (!mark) return undefined
  const { to, hash, mac, key_version: keyVersion } = mark
  if (!isMac(ring, { hash: digestOf(to, hash), mac: Buffer.from(mac, 'hex'), keyVersion })) return undefined
  return { seq: to, hash: Buffer.from(hash, 'hex') }
}

/** The last row that retention removed; number 0 if it removed none. */
export async function findPruned(db: Db, ring: Macs): Promise<Pruned> {
  let last: Pruned = { seq: 0, hash: NO_HASH }
  for (const { detail } of await auditSearch.listPrunes(db)) {
    const pruned = readPruned(ring, detail)
    if (pruned && pruned.seq > last.seq) last = pruned
  }
  return last
}
