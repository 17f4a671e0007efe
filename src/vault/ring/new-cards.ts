// Fingerprints and seals the cards of a chunk one after the other into buffers that the caller has made: an object, a hex
// text and a buffer for each card would take as long as the cryptography.
import { createCipheriv, createHmac } from 'node:crypto'
import { assert } from '../../errors.ts'
import { NONCE_BYTES, TAG_BYTES } from '../aead.ts'
import { UUID_BYTES, writeUuid } from '../uuid-bytes.ts'
import type { CardPhase } from './card-prints.ts'
import type { HeldKeys } from './held-keys.ts'

/** How many bytes longer a seal is than its PAN. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES

export interface NewCards {
  /** The version of the fingerprint key, and its turn (`Fingerprints`). */
  version: number
  turn: string
  /** Writes a card's fingerprint: 16 bytes. */
  print(pan: string, into: Buffer, at: number): void
  /**
   * Writes a sealed PAN; returns the version of the key. `into` holds the nonce at `at`: 12 random bytes that were never
   * used before. `ids`: of tokens, 16 bytes each.
   */
  seal(pan: string, ids: Buffer, index: number, into: Buffer, at: number): number
}

type Held = Pick<HeldKeys<'fingerprint' | 'seal'>, 'find' | 'forSeal'>

const PAN_BYTES_MAX = 19

/**
 * Undefined while cards are written or found under several versions (`CardPhase`): then use `fingerprints` of the ring.
 */
export function openNewCards(held: Held, phase: CardPhase, tokenScope: string): NewCards | undefined {
  const { turn, writes, looks } = phase
  const [version] = writes
  if (version === undefined || looks.length > 1) return undefined
  const key = held.find('fingerprint', version)
  // Filled and read within each call. That is safe because no call awaits in between.
  const scopeAndPan = Buffer.alloc(UUID_BYTES + PAN_BYTES_MAX)
  const idAndScope = Buffer.alloc(2 * UUID_BYTES)
  writeUuid(scopeAndPan, 0, tokenScope)
  writeUuid(idAndScope, UUID_BYTES, tokenScope)
  return {
    version,
    turn,
    print(pan, into, at) {
      assert(pan.length <= PAN_BYTES_MAX, 'a PAN has at most 19 digits')
      const end = UUID_BYTES + scopeAndPan.write(pan, UUID_BYTES, 'latin1')
      // A string and its conversion take less time than `digest()`, which allocates a buffer outside the pool.
      const hash = createHmac('sha256', key).update(scopeAndPan.subarray(0, end)).digest('binary')
      scopeAndPan.fill(0, UUID_BYTES, end)
      into.write(hash, at, UUID_BYTES, 'latin1')
    },
    seal(pan, ids, index, into, at) {
      ids.copy(idAndScope, 0, index * UUID_BYTES, (index + 1) * UUID_BYTES)
      const sealing = held.forSeal('seal')
      const nonce = into.subarray(at, at + NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealing.key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(idAndScope)
      cipher.update(pan, 'latin1').copy(into, at + NONCE_BYTES)
      // GCM is a stream cipher: final() returns no bytes and only computes the tag.
      cipher.final()
      cipher.getAuthTag().copy(into, at + NONCE_BYTES + pan.length)
      return sealing.version
    },
  }
}
