// From the row that the rules decided to the row that is stored: with its PAN sealed where the token keeps one.
import { assert } from '../src/errors.ts'
import type { Secret } from '../src/secret.ts'
import type { StoredToken } from '../src/store/tokens.ts'
import type { TokenRow } from '../src/token/token.ts'
import type { KeyRing } from '../src/vault/ring.ts'

/** `nonce`: 12 random bytes, where the caller drew those of a whole chunk at once. */
export function sealRow(
  verdict: { row: TokenRow; needsSeal: boolean },
  stored: StoredToken | undefined,
  pan: Secret | undefined,
  ring: KeyRing,
  nonce?: Buffer,
): StoredToken {
  const { row, needsSeal } = verdict
  if (!needsSeal) return { ...row, sealVersion: row.sealed === null ? null : (stored?.sealVersion ?? null) }
  assert(pan !== undefined, 'a row that keeps a PAN is decided with that PAN at hand')
  const { sealed, keyVersion } = ring.seal(pan, row.tokenId, row.tokenScope, nonce)
  return { ...row, sealed, sealVersion: keyVersion }
}

/** A UUID version 7 (RFC 9562) of this millisecond; `random` is 10 bytes. Ids in order of time keep the index dense. */
export function tokenIdAt(ms: number, random: Buffer): string {
  const time = ms.toString(16).padStart(12, '0')
  const hex = random.toString('hex')
  const variant = ((Number.parseInt(hex.slice(3, 4), 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`
}
