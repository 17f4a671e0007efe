// Seals a copy of a token's row before an interactive job changes it, so that a reversal can restore the row.
import type { Db } from '../../src/store/pool.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import * as cards from '../../src/store/token/cards.ts'
import type { StoredToken } from '../../src/store/token/token-row.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

/**
 * The sealed copy. The caller stores it in the same transaction as the change. `cardVersions`: the versions of the row's
 * fingerprints, where the row keeps no number and is linked to another card (`versionsOf`).
 */
export function beforeImageOf(
  row: StoredToken,
  receiptId: string,
  ring: KeyRing,
  cardVersions?: readonly number[],
): beforeImages.BeforeImage {
  const { link: _, storedCards = row.cards, ...kept } = row
  // The job may also have given the row other fingerprints of the card that it has. The reversal knows the card by either.
  const cards = cardVersions ? storedCards : [...new Set([...row.cards, ...storedCards])]
  const json = JSON.stringify({ ...kept, cards, cardVersions, sealed: encode(row.sealed) })
  const sealed = ring.sealBeforeImage(Buffer.from(json), row.tokenId)
  return { receiptId, tokenId: row.tokenId, ...sealed, sealVersion: row.sealVersion }
}

/**
 * The key's versions of a row's fingerprints. They are looked up only for a row without a number: fingerprints can be
 * computed again from a number.
 */
export async function versionsOf(db: Db, { sealed, storedCards = [] }: StoredToken): Promise<number[] | undefined> {
  if (sealed !== null) return undefined
  const versions = await cards.findVersions(db, storedCards)
  return storedCards.map(fp => versions.get(fp) ?? 0)
}

export interface Before {
  row: StoredToken
  /** The versions of its fingerprints, if they are known. */
  cardVersions: readonly number[] | undefined
}

/**
 * The row before the job of that receipt changed it, sealed under the active key; undefined if it changed none, or if
 * the copy is too old.
 */
export async function findBefore(db: Db, receiptId: string, ring: KeyRing): Promise<Before | undefined> {
  const image = await beforeImages.find(db, receiptId)
  if (!image) return undefined
  const json = ring.openBeforeImage(image.sealed, image.keyVersion, image.tokenId)
  const { cardVersions, ...row } = JSON.parse(json.toString('utf8')) as Omit<StoredToken, 'sealed'> & {
    cardVersions?: number[]
    sealed: string | null
  }
  return { row: sealedAnew({ ...row, sealed: decode(row.sealed) }, ring), cardVersions }
}

/**
 * The key may have turned since the copy was made. Re-encryption doesn't look into copies, so what goes back into the
 * token's row must not name the former key.
 */
function sealedAnew(row: StoredToken, ring: KeyRing): StoredToken {
  const { tokenId, tokenScope, sealed, sealVersion } = row
  if (sealed === null || sealVersion === null) return row
  const fresh = ring.seal(ring.open(sealed, sealVersion, tokenId, tokenScope), tokenId, tokenScope)
  return fresh.keyVersion === sealVersion ? row : { ...row, sealed: fresh.sealed, sealVersion: fresh.keyVersion }
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
