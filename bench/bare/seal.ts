// The cryptography of the bare loop, as of commit 55c0cab: HMAC-SHA256 over scope and card number, AES-256-GCM with the
// token's id and scope as additional data, and ids of UUID version 7. The keys are made for the run and are never stored.
import { createCipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'

export const NONCE_BYTES = 12
const TAG_BYTES = 16
const UUID_BYTES = 16
const KEY_BYTES = 32

export interface BareKeys {
  fingerprint(pan: string, scope: string): Buffer
  /** Nonce, ciphertext, tag. */
  seal(pan: string, tokenId: string, scope: string, nonce: Buffer): Buffer
}

export function openKeys(): BareKeys {
  const [sealing, printing] = [createSecretKey(randomBytes(KEY_BYTES)), createSecretKey(randomBytes(KEY_BYTES))]
  // Written anew for each call and read before it returns.
  const idAndScope = Buffer.alloc(2 * UUID_BYTES)
  const scopeAndPan = Buffer.alloc(UUID_BYTES + 64)
  return {
    fingerprint(pan, scope) {
      if (!/^\d{12,19}$/.test(pan)) throw new Error('a card number has 12 to 19 digits')
      writeUuid(scopeAndPan, 0, scope)
      const end = UUID_BYTES + scopeAndPan.write(pan, UUID_BYTES, 'latin1')
      const mac = createHmac('sha256', printing).update(scopeAndPan.subarray(0, end))
      scopeAndPan.fill(0, UUID_BYTES, end)
      return Buffer.from(mac.digest('binary'), 'latin1')
    },
    seal(pan, tokenId, scope, nonce) {
      writeUuid(idAndScope, 0, tokenId)
      writeUuid(idAndScope, UUID_BYTES, scope)
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(idAndScope)
      const ciphertext = cipher.update(pan, 'utf8')
      cipher.final()
      return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
    },
  }
}

/** Time, 12 hex digits, for the ids of one moment. */
export function timeOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`
}

const ID_DIGITS = 19
const VARIANT = '89ab'

/** A UUID version 7: `time` is of `timeOf`, `random` has at least 19 hex digits from `at` on. */
export function tokenIdAt(time: string, random: string, at: number): string {
  const variant = VARIANT[random.charCodeAt(at + 3) & 0x3] ?? '8'
  return `${time}${random.slice(at, at + 3)}-${variant}${random.slice(at + 4, at + 7)}-${random.slice(at + 7, at + ID_DIGITS)}`
}

const NOT_HEX = 0xff
const HEX = new Uint8Array(128).fill(NOT_HEX)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX[digit.charCodeAt(0)] = value
  HEX[digit.toUpperCase().charCodeAt(0)] = value
}
const DASHES = [8, 13, 18, 23]
const PAIRS = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

function writeUuid(into: Buffer, offset: number, uuid: string): void {
  let wrong = uuid.length === 36 ? 0 : NOT_HEX
  for (const at of DASHES) if (uuid.charCodeAt(at) !== 0x2d) wrong = NOT_HEX
  for (let i = 0; i < UUID_BYTES; i++) {
    const at = PAIRS[i] ?? 0
    const high = HEX[uuid.charCodeAt(at)] ?? NOT_HEX
    const low = HEX[uuid.charCodeAt(at + 1)] ?? NOT_HEX
    wrong |= (high | low) & 0xf0
    into[offset + i] = (high << 4) | low
  }
  if (wrong !== 0) throw new Error('a UUID has the form 8-4-4-4-12')
}
