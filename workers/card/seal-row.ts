// Turns the row that the rules decided into the row that is stored: seals the PAN, if the token keeps one.
import { randomBytes } from 'node:crypto'
import { assert } from '../../src/errors.ts'
import type { Secret } from '../../src/secret.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { TokenRow } from '../../src/token/token.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

/**
 * `verdict.row` is the rules' own copy and is changed in place. `nonce`: 12 random bytes, if the caller has drawn those
 * of a whole chunk at once.
 */
export function sealRow(
  verdict: { row: TokenRow; needsSeal: boolean },
  stored: StoredToken | undefined,
  pan: Secret | undefined,
  ring: KeyRing,
  nonce?: Buffer,
): StoredToken {
  const { row } = verdict
  if (!verdict.needsSeal)
    return Object.assign(row, { sealVersion: row.sealed === null ? null : (stored?.sealVersion ?? null) })
  assert(pan !== undefined, 'a row that keeps a PAN is decided with that PAN at hand')
  const { sealed, keyVersion } = ring.seal(pan, row.tokenId, row.tokenScope, nonce)
  return Object.assign(row, { sealed, sealVersion: keyVersion })
}

/** The time as 12 hex digits, for ids made at the same moment. */
export function timeOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`
}

/** How many random hex digits an id needs. */
const ID_DIGITS = 19
const VARIANT = '89ab'

/**
 * A UUID version 7 (RFC 9562). `time`: from `timeOf`; `random`: at least 19 hex digits from index `at` on. Ids in order
 * of time keep the index small.
 */
export function tokenIdAt(time: string, random: string, at = 0): string {
  const variant = VARIANT[random.charCodeAt(at + 3) & 0x3] ?? '8'
  return `${time}${random.slice(at, at + 3)}-${variant}${random.slice(at + 4, at + 7)}-${random.slice(at + 7, at + ID_DIGITS)}`
}

const ID_BYTES = 16
const TIME_BYTES = 6

/** The bytes of many such ids of one moment. */
export function tokenIdsAt(ms: number, count: number): Buffer {
  const ids = randomBytes(count * ID_BYTES)
  for (let at = 0; at < ids.length; at += ID_BYTES) {
    ids.writeUIntBE(ms, at, TIME_BYTES)
    ids[at + 6] = 0x70 | ((ids[at + 6] ?? 0) & 0x0f)
    ids[at + 8] = 0x80 | ((ids[at + 8] ?? 0) & 0x3f)
  }
  return ids
}
