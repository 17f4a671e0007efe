// AES-256-GCM for what the vault stores encrypted under its data keys. One buffer holds nonce (12 bytes), ciphertext and tag
// (16 bytes). jwe.ts and pgp/ decrypt what senders have encrypted.
import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'

export const NONCE_BYTES = 12
export const TAG_BYTES = 16

/**
 * Encrypts. `nonce` must never have been used with `key`: 12 random bytes, which are safe for 2^32 seals under one key
 * (NIST SP 800-38D, 8.3). At half of that number a worker replaces the key.
 */
export function sealWith(key: KeyObject, nonce: Buffer, plain: Buffer | string, aad: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(aad)
  const ciphertext = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  // GCM is a stream cipher: final() returns no bytes and only computes the tag.
  cipher.final()
  return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
}

/** Decrypts. Throws if `sealed` wasn't made with this key and this `aad`. */
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
