// A card as a compact JWE (RFC 7516), RSA-OAEP-256 and A256GCM, by Web Crypto alone. The key is one of
// /.well-known/capture-keys; `kid` is its alias.

/**
 * @param {object} card the tags of `encrypted_card`, `captureTime` included
 * @param {{ kid: string, n: string, e: string }} jwk
 * @returns {Promise<string>}
 */
export async function encryptCard(card, { kid, n, e }) {
  const oaep = { name: 'RSA-OAEP', hash: 'SHA-256' }
  const recipient = await crypto.subtle.importKey('jwk', { kty: 'RSA', n, e }, oaep, false, ['encrypt'])
  const content = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt'])
  const header = base64url(utf8(JSON.stringify({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid })))
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const gcm = { name: 'AES-GCM', iv, additionalData: utf8(header), tagLength: 128 }
  const sealed = new Uint8Array(await crypto.subtle.encrypt(gcm, content, utf8(JSON.stringify(card))))
  const key = await crypto.subtle.encrypt(oaep, recipient, await crypto.subtle.exportKey('raw', content))
  const parts = [new Uint8Array(key), iv, sealed.subarray(0, -16), sealed.subarray(-16)]
  return [header, ...parts.map(base64url)].join('.')
}

const utf8 = text => new TextEncoder().encode(text)

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  const text = btoa(String.fromCharCode(...bytes))
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
