// What is derived from the secret of a link (src/vault/passkey/invite-key.ts): the value by which the console finds it, and a key
// pair. The modules that make a link and that open one share it, and texts of bytes.

/** The value by which the console finds the link: base64url. */
export async function lookupOf(secret) {
  return text(await derive(secret, 'tokenmill link lookup'))
}

/** The private half of the invite's key. Throws `NotSupportedError` in a browser without Ed25519. */
export async function keyOf(secret, isExtractable = false) {
  // What stands before the seed of an Ed25519 key in PKCS#8 (RFC 8410).
  const prefix = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]
  const seed = new Uint8Array(await derive(secret, 'tokenmill invite key'))
  return crypto.subtle.importKey('pkcs8', Uint8Array.from([...prefix, ...seed]), 'Ed25519', isExtractable, ['sign'])
}

/** 32 bytes of the secret, by HKDF-SHA-256. */
async function derive(secret, info) {
  const base = await crypto.subtle.importKey('raw', utf8(secret), 'HKDF', false, ['deriveBits'])
  const how = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: utf8(info) }
  return crypto.subtle.deriveBits(how, base, 256)
}

/** SHA-256, base64url. */
export async function hashOf(buffer) {
  return text(await crypto.subtle.digest('SHA-256', buffer))
}

export function utf8(words) {
  return new TextEncoder().encode(words)
}

/** base64url. */
export function text(buffer) {
  const plain = Array.from(new Uint8Array(buffer), byte => String.fromCharCode(byte)).join('')
  return btoa(plain).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
