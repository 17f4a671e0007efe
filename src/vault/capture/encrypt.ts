// The sender's side of a capture key: reads the public half and encrypts a card to it. It needs neither the
// key-encryption key nor the store, so that any producer can use it. Speed doesn't matter for single cards, so jose
// encrypts them: then every round trip checks our own decryption against another implementation.
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { CompactEncrypt } from 'jose'
import type { PublicKey } from 'openpgp'
import { ConfigError } from '../../config.ts'
import type { InstallationKeys } from '../../job/envelope/installation-jws.ts'
import { thumbprintOf } from '../client-key.ts'
import { JWE_ALG, type JweKeyType, jweTypeOf, PRIVATE_MEMBERS } from '../jwe-key.ts'
import { openCaptureStatement, type StatedKey, statementIn } from './statement.ts'

/** `kid`: set if the installation's statement about the key was verified; then its workers know keys by their `kid`. */
export type PublicCaptureKey = { alias: string; kid?: string } & (
  | { type: JweKeyType; publicKey: KeyObject }
  | { type: 'pgp'; publicKey: PublicKey }
)

/** The keys and names that a reader trusts. */
export interface CaptureTrust {
  audience: string
  entityId: string
  keys: InstallationKeys
}

/**
 * Reads a public capture key. `text`: a public JWK as JSON, or an armored OpenPGP public key. Throws `ConfigError` for
 * anything else. With `trust` the statement inside the key is verified, and `ConfigError` is thrown for a key that isn't
 * the installation's, or has no statement.
 */
export async function readPublicCaptureKey(
  alias: string,
  text: string,
  trust?: CaptureTrust,
): Promise<PublicCaptureKey> {
  const key = await (text.trimStart().startsWith('{') ? readJwk(alias, text) : readArmor(alias, text))
  const statement = statementIn(text)
  if (!trust) return key
  if (statement === undefined)
    throw new ConfigError(
      `the file of the public key ${alias} has no statement of the installation, so anybody may have written it; ask the operator for this file anew`,
    )
  return { ...key, kid: verifyCaptureKey(key, statement, trust).kid }
}

/**
 * Verifies a statement about this key and returns its content. Throws `ConfigError` if the statement is about another
 * key, or no trusted key signed it.
 */
export function verifyCaptureKey(key: PublicCaptureKey, statement: string, trust: CaptureTrust): StatedKey {
  const stated = openCaptureStatement(statement, trust.audience, trust.keys)
  if (!stated)
    throw new ConfigError(
      `no known key of the installation signed the statement about the public key ${key.alias}; ask the operator for this file anew, and compare installation_keys`,
    )
  const kid = key.type === 'pgp' ? key.publicKey.getFingerprint().toLowerCase() : thumbprintOf(key.publicKey)
  if (stated.alias !== key.alias || stated.kid !== kid || stated.entityId !== trust.entityId)
    throw new ConfigError(
      `the public key given for ${key.alias} is not the one that the installation signed: somebody may have put another in its place, so nothing is encrypted to it; ask the operator for it anew`,
    )
  return stated
}

/**
 * Makes the value of `encrypted_card`: a compact JWE, or base64 of an armored OpenPGP message. `card` is encrypted
 * unchanged.
 */
export async function encryptCard(card: object, to: PublicCaptureKey): Promise<string> {
  const plain = Buffer.from(JSON.stringify(card))
  if (to.type !== 'pgp') {
    return new CompactEncrypt(plain)
      .setProtectedHeader({ alg: JWE_ALG[to.type], enc: 'A256GCM', kid: to.kid ?? to.alias })
      .encrypt(to.publicKey)
  }
  const { encryptToPgpKey } = await import('../pgp/pgp-public-key.ts')
  return Buffer.from(await encryptToPgpKey(plain, to.publicKey)).toString('base64')
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
  const { canEncryptTo, readPublicPgpKey } = await import('../pgp/pgp-public-key.ts')
  const publicKey = await readPublicPgpKey(text)
  if (!publicKey) throw new ConfigError(`the public key ${alias} is neither a JWK nor an armored OpenPGP key`)
  if (publicKey.isPrivate()) throw new ConfigError(`the file of the public key ${alias} holds its private half`)
  if (!(await canEncryptTo(publicKey)))
    throw new ConfigError(`the public key ${alias} has nothing that a card may be encrypted to`)
  return { alias, type: 'pgp', publicKey }
}
