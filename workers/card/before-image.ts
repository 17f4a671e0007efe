// A token's row as it was before an interactive job changed it, sealed, so that a reversal can put it back.
import type { Db } from '../../src/store/pool.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'

/** To be stored together with the change. */
export function beforeImageOf(row: StoredToken, receiptId: string, ring: KeyRing): beforeImages.BeforeImage {
  const json = JSON.stringify({ ...row, fingerprint: encode(row.fingerprint), sealed: encode(row.sealed) })
  return { receiptId, tokenId: row.tokenId, ...ring.sealBeforeImage(Buffer.from(json), row.tokenId) }
}

/** The row as the job of that receipt found it; undefined where it changed none, or too long ago. */
export async function findBefore(db: Db, receiptId: string, ring: KeyRing): Promise<StoredToken | undefined> {
  const image = await beforeImages.find(db, receiptId)
  if (!image) return undefined
  const json = ring.openBeforeImage(image.sealed, image.keyVersion, image.tokenId)
  const row = JSON.parse(json.toString('utf8')) as StoredToken & { fingerprint: string | null; sealed: string | null }
  // An image of a release that knew no third parties is one of the vault's own tokens.
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
