// The keyed hashes of a card's number: its fingerprints, by which its token is found, and its analytics token. The caller
// passes which versions of the fingerprint key count; this file reads no store.
import { createHmac, type Hmac, type KeyObject } from 'node:crypto'
import { assert } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import type { Fingerprints } from '../../token/token.ts'
import { UUID_BYTES, writeUuid } from '../uuid-bytes.ts'
import type { HeldKeys } from './held-keys.ts'

/**
 * SINGLE: one version is written. BOTH: the former and the next are written, and the workers write the next one into older
 * rows. NEW: the next one is written, and the workers remove the former. Then SINGLE again.
 */
export type PhaseName = 'SINGLE' | 'BOTH' | 'NEW'

/** Under which versions of the fingerprint key cards are written and found. */
export interface CardPhase {
  /** The bytes by which the store says so. A transaction that writes cards compares them with the store's. */
  turn: string
  phase: PhaseName
  /** The versions of the fingerprints that a token's row keeps. */
  writes: readonly number[]
  /** All versions under which a card may be found; `writes` come first. */
  looks: readonly number[]
}

export interface CardPrints {
  /**
   * The card's fingerprint in the scope under the active key: 32 bytes that are equal only for the same card in the same
   * scope (PCI DSS 3.5.1.1: a keyed hash of the whole PAN).
   */
  fingerprint(pan: Secret, tokenScope: string): Buffer
  /** The fingerprints of a card in a scope under all versions of the key that count now. */
  fingerprints(pan: Secret, tokenScope: string): Fingerprints
  /**
   * The fingerprint, as a UUID, under one version of the key. Throws `Fault('key_unavailable')` if the ring has no such
   * version.
   */
  fingerprintBy(pan: Secret, tokenScope: string, keyVersion: number): string
  /** Under which versions of the fingerprint key cards are written and found. */
  cardPhase(): CardPhase
  /** The analytics token: `a` and 43 base64url characters. It is made like a fingerprint, with another key. */
  analyticsToken(pan: Secret, tokenScope: string): string
}

type Held = Pick<HeldKeys<'fingerprint' | 'analytics'>, 'current' | 'find'>

/** `phaseNow`: if it gives undefined, only the active version counts, and no store agrees with what was hashed. */
export function openCardPrints(held: Held, phaseNow: () => CardPhase | undefined): CardPrints {
  // One shared buffer, filled and read within each call. That is safe because no call awaits in between.
  const scopeAndPan = Buffer.alloc(UUID_BYTES + 64)
  const macOf = (key: KeyObject, pan: string, tokenScope: string) => {
    assert(/^\d{12,19}$/.test(pan), 'a PAN has 12 to 19 digits')
    writeUuid(scopeAndPan, 0, tokenScope)
    const end = UUID_BYTES + scopeAndPan.write(pan, UUID_BYTES, 'latin1')
    const mac = createHmac('sha256', key).update(scopeAndPan.subarray(0, end))
    scopeAndPan.fill(0, UUID_BYTES, end)
    return mac
  }
  const printBy = (pan: string, tokenScope: string, version: number) =>
    uuidOf(macOf(held.find('fingerprint', version), pan, tokenScope).digest('hex'))
  const cardPhase = (): CardPhase => {
    const phase = phaseNow()
    if (phase) return phase
    const { version } = held.current('fingerprint')
    return { turn: '', phase: 'SINGLE', writes: [version], looks: [version] }
  }
  return {
    fingerprint: (pan, tokenScope) => digestOf(macOf(held.current('fingerprint').key, pan.reveal(), tokenScope)),
    fingerprints: (pan, tokenScope) => {
      const { turn, writes, looks } = cardPhase()
      const text = pan.reveal()
      const known = looks.map(version => printBy(text, tokenScope, version))
      const kept = writes.length === looks.length ? known : known.slice(0, writes.length)
      return { kept, versions: writes, known, turn }
    },
    fingerprintBy: (pan, tokenScope, keyVersion) => printBy(pan.reveal(), tokenScope, keyVersion),
    cardPhase,
    analyticsToken: (pan, tokenScope) =>
      `a${macOf(held.current('analytics').key, pan.reveal(), tokenScope).digest('base64url')}`,
  }
}

/** The first 16 bytes of a hash, as a UUID. */
function uuidOf(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/**
 * Making the digest as a string and converting it takes 1.6 µs; `digest()` takes 2.3 µs, because it allocates each
 * buffer outside the pool.
 */
function digestOf(mac: Hmac): Buffer {
  return Buffer.from(mac.digest('binary'), 'latin1')
}
