// The credentials of clients: signing keys, and API keys for HTTP clients. The algorithm is fixed when a key is
// registered. src/job signs and verifies.
import { createPublicKey, generateKeyPairSync, hash, type JsonWebKey, type KeyObject, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { ConfigError } from '../config.ts'
import { ALGORITHMS, type Algorithm } from '../job/envelope/signature.ts'
import { Secret } from '../secret.ts'
import { PRIVATE_MEMBERS, RSA_BITS } from './jwe-key.ts'

/** A JWK (RFC 7517 section 4) whose members aren't checked yet. */
export const Jwk = z.record(z.string(), z.unknown())
export type Jwk = z.infer<typeof Jwk>

interface SigningKeyPair {
  alg: 'EdDSA'
  kid: string
  publicJwk: Jwk
  privateJwk: Secret<Jwk>
}

interface VerifyingKey {
  alg: Algorithm
  kid: string
  key: KeyObject
}

/** Makes a new Ed25519 pair; `kid` is its RFC 7638 thumbprint. */
export function makeSigningKey(): SigningKeyPair {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { d, ...publicPart } = privateKey.export({ format: 'jwk' })
  const kid = thumbprint(publicPart)
  const publicJwk = { ...publicPart, kid, alg: 'EdDSA', use: 'sig' }
  return { alg: 'EdDSA', kid, publicJwk, privateJwk: new Secret<Jwk>({ ...publicJwk, d }) }
}

/**
 * Imports a client's public key: Ed25519, P-256, or RSA of 2048 to 4096 bits, whose `alg` must be PS256 or RS256. `kid`
 * is the JWK's own, else its thumbprint. Throws `ConfigError` for anything else, in particular for a private key.
 */
export function importPublicJwk(jwk: Jwk): VerifyingKey {
  if (PRIVATE_MEMBERS.some(name => Object.hasOwn(jwk, name))) throw new ConfigError('the JWK holds its private half')
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') throw new ConfigError('the JWK is not for signing (use)')
  const key = importKey(jwk)
  const alg = algorithmOf(key, jwk['alg'])
  const kid = jwk['kid'] ?? thumbprintOf(key)
  if (typeof kid !== 'string' || !/^[!-~]{1,256}$/.test(kid))
    throw new ConfigError('kid is not 1 to 256 printable characters')
  return { alg, kid, key }
}

/**
 * Whether `key_ops` permits this public key to verify signatures (RFC 7517 section 4.3). A JWK that was made from a
 * private key may still say `sign`, and is refused until that member is removed.
 */
export function mayVerify({ key_ops: operations }: Jwk): boolean {
  if (operations === undefined) return true
  if (!Array.isArray(operations) || new Set(operations).size !== operations.length) return false
  return operations.includes('verify') && operations.every(operation => typeof operation === 'string')
}

/**
 * Imports a key that a client registers: as `importPublicJwk`, and `key_ops` must permit verifying. Throws
 * `ConfigError`.
 */
export function importRegisteredJwk(jwk: Jwk): VerifyingKey {
  if (!mayVerify(jwk)) throw new ConfigError('the JWK is not for verifying signatures (key_ops)')
  return importPublicJwk(jwk)
}

/** Makes an API key: 32 random bytes, base64url. */
export function makeApiKey(): Secret {
  return new Secret(randomBytes(32).toString('base64url'))
}

function importKey(jwk: Jwk): KeyObject {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
  } catch {
    throw new ConfigError('not a public JWK')
  }
}

function algorithmOf(key: KeyObject, stated: unknown): Algorithm {
  const possible = algorithmsOf(key)
  if (possible.length === 0) throw new ConfigError('a signing key is Ed25519, P-256 or RSA of 2048 to 4096 bits')
  const alg = stated ?? (possible.length === 1 ? possible[0] : undefined)
  const known = ALGORITHMS.find(name => name === alg)
  if (!known || !possible.includes(known)) throw new ConfigError(`the JWK must say alg ${possible.join(' or ')}`)
  return known
}

function algorithmsOf(key: KeyObject): Algorithm[] {
  const { namedCurve, modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return ['EdDSA']
    case 'ec':
      return namedCurve === 'prime256v1' ? ['ES256'] : []
    case 'rsa': {
      // A small exponent is never legitimate; with 1 every signature would be valid.
      const isSound = modulusLength >= RSA_BITS.least && modulusLength <= RSA_BITS.most && publicExponent >= 0x10001n
      return isSound ? ['PS256', 'RS256'] : []
    }
    default:
      return []
  }
}

/** The thumbprint of RFC 7638: the fingerprint of a client's key. */
export function thumbprintOf(key: KeyObject): string {
  return thumbprint(key.export({ format: 'jwk' }))
}

/** The thumbprint is made of the required members of the key's type, in alphabetical order. */
function thumbprint({ kty, crv, x, y, e, n }: Jwk): string {
  const required = kty === 'RSA' ? { e, kty, n } : kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x }
  return hash('sha256', JSON.stringify(required), 'base64url')
}
