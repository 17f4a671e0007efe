// The credentials of clients: signing keys, and API keys for HTTP clients. The algorithm is fixed when a key is
// registered. src/job signs and verifies.
import { createPublicKey, generateKeyPairSync, hash, type JsonWebKey, type KeyObject, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { ConfigError } from '../config.ts'
import { ALGORITHMS, type Algorithm } from '../job/envelope/signature.ts'
import { Secret } from '../secret.ts'
import { PRIVATE_MEMBERS, RSA_BITS } from './jwe-key.ts'

/** RFC 7517 section 4, its members unread. */
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

/** A new Ed25519 pair; `kid` is its RFC 7638 thumbprint. */
export function makeSigningKey(): SigningKeyPair {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { d, ...publicPart } = privateKey.export({ format: 'jwk' })
  const kid = thumbprint(publicPart)
  const publicJwk = { ...publicPart, kid, alg: 'EdDSA', use: 'sig' }
  return { alg: 'EdDSA', kid, publicJwk, privateJwk: new Secret<Jwk>({ ...publicJwk, d }) }
}

/**
 * A client's public key: Ed25519, P-256, or RSA of 2048 to 4096 bits, which must say whether its `alg` is PS256 or RS256.
 * `kid` is the JWK's own or else its thumbprint. Throws `ConfigError` for anything else, a private half above all.
 */
export function importPublicJwk(jwk: Jwk): VerifyingKey {
  if (PRIVATE_MEMBERS.some(name => Object.hasOwn(jwk, name))) throw new ConfigError('the JWK holds its private half')
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') throw new ConfigError('the JWK is not for signing (use)')
  const key = importKey(jwk)
  const alg = algorithmOf(key, jwk['alg'])
  const kid = jwk['kid'] ?? thumbprint(key.export({ format: 'jwk' }))
  if (typeof kid !== 'string' || !/^[!-~]{1,256}$/.test(kid))
    throw new ConfigError('kid is not 1 to 256 printable characters')
  return { alg, kid, key }
}

/**
 * Whether a public key may verify signatures by its `key_ops` (RFC 7517 section 4.3). A private key's `key_ops` says
 * `sign`: its public half is this key without that member.
 */
export function mayVerify({ key_ops: operations }: Jwk): boolean {
  if (operations === undefined) return true
  if (!Array.isArray(operations) || new Set(operations).size !== operations.length) return false
  return operations.includes('verify') && operations.every(operation => typeof operation === 'string')
}

/** A key that a client registers: `importPublicJwk`, and it may verify. Throws `ConfigError`. */
export function importRegisteredJwk(jwk: Jwk): VerifyingKey {
  if (!mayVerify(jwk)) throw new ConfigError('the JWK is not for verifying signatures (key_ops)')
  return importPublicJwk(jwk)
}

/** 32 random bytes, base64url. */
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
      // A small exponent (1 makes every signature valid) is never legitimate.
      const isSound = modulusLength >= RSA_BITS.least && modulusLength <= RSA_BITS.most && publicExponent >= 0x10001n
      return isSound ? ['PS256', 'RS256'] : []
    }
    default:
      return []
  }
}

/** RFC 7638: the required members of a key type, in the order of the alphabet. */
function thumbprint({ kty, crv, x, y, e, n }: Jwk): string {
  const required = kty === 'RSA' ? { e, kty, n } : kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x }
  return hash('sha256', JSON.stringify(required), 'base64url')
}
