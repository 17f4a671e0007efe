// The sender's side of a capture key: reads the public half and encrypts a card to it. It needs neither the
// key-encryption key nor the store, so that any producer can use it. Speed doesn't matter for single cards, so jose
// encrypts them: then every round trip checks our own decryption against another implementation.
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { CompactEncrypt } from 'jose'
import { createMessage, encrypt, type PublicKey, readKey } from 'openpgp'
import { ConfigError } from '../config.ts'
import { JWE_ALG, type JweKeyType, jweTypeOf, PRIVATE_MEMBERS } from './jwe-key.ts'
import { OPENPGP } from './pgp/pgp.ts'

export type PublicCaptureKey =
  | { alias: string; type: JweKeyType; publicKey: KeyObject }
  | { alias: string; type: 'pgp'; publicKey: PublicKey }

/**
 * Reads a public capture key. `text`: a public JWK as JSON, or an armored OpenPGP public key. Throws `ConfigError` for
 * anything else.
 */
export async function readPublicCaptureKey(alias: string, text: string): Promise<PublicCaptureKey> {
  return text.trimStart().startsWith('{') ? readJwk(alias, text) : readArmor(alias, text)
}

/**
 * Makes the value of `encrypted_card`: a compact JWE, or base64 of an armored OpenPGP message. `card` is encrypted as
 * it is.
 */
export async function encryptCard(card: object, to: PublicCaptureKey): Promise<string> {
  const plain = Buffer.from(JSON.stringify(card))
  if (to.type !== 'pgp') {
    return new CompactEncrypt(plain)
      .setProtectedHeader({ alg: JWE_ALG[to.type], enc: 'A256GCM', kid: to.alias })
      .encrypt(to.publicKey)
  }
  // Otherwise a key that was just made by a server with a fast clock wouldn't be valid yet.
  const date = new Date(Math.max(Date.now(), to.publicKey.getCreationTime().getTime()))
  const armored = await encrypt({
    message: await createMessage({ binary: new Uint8Array(plain), date }),
    encryptionKeys: to.publicKey,
    format: 'armored',
    date,
    config: OPENPGP,
  })
  return Buffer.from(armored).toString('base64')
}

function readJwk(alias: string, text: string): PublicCaptureKey {
  const jwk = parseJwk(text)
  if (!jwk) throw new ConfigError(`the public key ${alias} is not a JWK`)
  if (PRIVATE_MEMBERS.some(name => Object.hasOwn(jwk, name))) {
    throw new ConfigError(`the file of the public key ${alias} holds its private half`)
  }
  if (jwk['kid'] !== undefined && jwk['kid'] !== alias)
    throw new ConfigError(`the public key given for ${alias} is another's`)
  const publicKey = importJwk(jwk)
  const type = publicKey && jweTypeOf(publicKey)
  if (!type) throw new ConfigError(`the public key ${alias} is not RSA of 2048 to 4096 bits, P-256 or X25519`)
  return { alias, type, publicKey }
}

function parseJwk(text: string): JsonWebKey | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonWebKey) : undefined
  } catch {
    return undefined
  }
}

function importJwk(jwk: JsonWebKey): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}

async function readArmor(alias: string, text: string): Promise<PublicCaptureKey> {
  const publicKey = await readKey({ armoredKey: text, config: OPENPGP }).catch(() => undefined)
  if (!publicKey) throw new ConfigError(`the public key ${alias} is neither a JWK nor an armored OpenPGP key`)
  if (publicKey.isPrivate()) throw new ConfigError(`the file of the public key ${alias} holds its private half`)
  const usable = await publicKey.getEncryptionKey(undefined, null, undefined, OPENPGP).catch(() => undefined)
  if (!usable) throw new ConfigError(`the public key ${alias} has nothing that a card may be encrypted to`)
  return { alias, type: 'pgp', publicKey }
}
