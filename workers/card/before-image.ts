// Seals a copy of a token's row before an interactive job changes it, so that a reversal can restore the row.
import type { Db } from '../../src/store/pool.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'

/** The sealed copy. The caller stores it in the same transaction as the change. */
export function beforeImageOf(row: StoredToken, receiptId: string, ring: KeyRing): beforeImages.BeforeImage {
  const json = JSON.stringify({ ...row, fingerprint: encode(row.fingerprint), sealed: encode(row.sealed) })
  return { receiptId, tokenId: row.tokenId, ...ring.sealBeforeImage(Buffer.from(json), row.tokenId) }
}

/** The row before the job of that receipt changed it; undefined if it changed none, or if the copy is too old. */
export async function findBefore(db: Db, receiptId: string, ring: KeyRing): Promise<StoredToken | undefined> {
  const image = await beforeImages.find(db, receiptId)
  if (!image) return undefined
  const json = ring.openBeforeImage(image.sealed, image.keyVersion, image.tokenId)
  const row = JSON.parse(json.toString('utf8')) as StoredToken & { fingerprint: string | null; sealed: string | null }
  // A copy by a release that didn't know third parties belongs to one of the vault's own tokens.
  return {
    ...row,
    thirdParty: row.thirdParty ?? null,
    fingerprint: decode(row.fingerprint),
    sealed: decode(row.sealed),
  }
}

const encode = (bytes: Buffer | null) => bytes?.toString('base64') ?? null
const decode = (text: string | null) => (text === null ? null : Buffer.from(text, 'base64'))

/** An owner who left a token by a single job since then (ms) may come back, when the job is reversed. */
export function reversibleSince(now: number): number {
  return now - beforeImages.BEFORE_IMAGE_HOURS * 3_600_000
}

/** Writes a batch's receipt into a row that a reversal could still restore, so that no reversal does. */
export function confirmed(row: StoredToken, { now, receiptId }: { now: number; receiptId: string }): StoredToken {
  const isYoung = row.updatedAt > reversibleSince(now)
  return row.mark === null && isYoung && row.lastReceipt !== receiptId ? { ...row, lastReceipt: receiptId } : row
}
