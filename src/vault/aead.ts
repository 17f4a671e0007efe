// AES-256-GCM for everything that is stored encrypted: nonce (12) || ciphertext || tag (16) in one buffer. The wire
// format is jwe.ts.
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'

export const NONCE_BYTES = 12
export const TAG_BYTES = 16

/**
 * `nonce` must never have been used with `key`: 12 random bytes, which hold for 2^32 seals under one key (NIST SP
 * 800-38D, 8.3); a key is rotated long before.
 */
export function sealWith(key: KeyObject, nonce: Buffer, plain: Buffer | string, aad: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(aad)
  const ciphertext = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  // GCM is a stream: final() yields no bytes, only the tag.
  cipher.final()
  return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
}

/** Throws where `sealed` wasn't sealed by this key with this `aad`. */
export function openWith(key: KeyObject, sealed: Buffer, aad: Buffer): Buffer {
  const end = sealed.length - TAG_BYTES
  if (end < NONCE_BYTES) throw new RangeError('sealed bytes are too short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(end))
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, end))
  decipher.final()
  return plain
}
