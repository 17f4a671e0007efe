// JWTs of the 3-D Secure service: HS256 only, with the key that the caller passes. src/three-ds checks their claims,
// and that each is used once.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose'
import { ConfigError } from '../config.ts'
import { assert } from '../errors.ts'
import { Secret } from '../secret.ts'

const KEY_BYTES_LEAST = 32
const JWT_BYTES_MAX = 16 * 1024
const AGE_SECONDS_MAX = 2 * 3600
/** How far other parties' clocks may be off. */
const SKEW_SECONDS = 60
// jose also accepts base64url that isn't canonical, so the form is checked here.
const FORM = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/

type JwtClaims = Record<string, unknown>
type VerifiedJwt = { jti: string; aud: string; claims: JwtClaims } | { fault: 'malformed' | 'signature' | 'expired' }

export function makeJwtKey(): Secret<Buffer> {
  return new Secret(randomBytes(KEY_BYTES_LEAST))
}

/**
 * Reads a key that was made elsewhere: base64, base64url, or hex on one line. Throws `ConfigError` for another form, or
 * fewer than 32 bytes.
 */
export function readJwtKey(text: Secret): Secret<Buffer> {
  const given = text.reveal().trim()
  const bytes = /^([0-9a-fA-F]{2})+$/.test(given) ? Buffer.from(given, 'hex') : Buffer.from(given, 'base64')
  if (!/^[A-Za-z0-9+/_=-]*$/.test(given)) throw new ConfigError('the key is neither base64 nor hex')
  if (bytes.length < KEY_BYTES_LEAST) throw new ConfigError(`the key has fewer than ${KEY_BYTES_LEAST} bytes`)
  return new Secret(bytes)
}

function keyOf(key: Secret<Buffer>): KeyObject {
  assert(key.reveal().length >= KEY_BYTES_LEAST, 'an HS256 key has 32 bytes at least')
  return createSecretKey(key.reveal())
}

/** Signs `claims` unchanged. `iat` and `exp` are in seconds. */
export async function sign(key: Secret<Buffer>, claims: JwtClaims): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).sign(keyOf(key))
}

/**
 * Verifies a JWT. `now`: ms since the epoch. It checks the form, then the signature, then the age, so that nothing is
 * told about the claims of a foreign JWT.
 */
export async function verify(key: Secret<Buffer>, jwt: string, now: number): Promise<VerifiedJwt> {
  if (jwt.length > JWT_BYTES_MAX || !isCanonical(jwt)) return { fault: 'malformed' }
  try {
    const { payload } = await jwtVerify(jwt, keyOf(key), {
      algorithms: ['HS256'],
      currentDate: new Date(now),
      clockTolerance: SKEW_SECONDS,
      maxTokenAge: AGE_SECONDS_MAX,
      requiredClaims: ['jti', 'aud', 'iat'],
    })
    const { jti, aud } = payload
    if (typeof jti !== 'string' || typeof aud !== 'string') return { fault: 'malformed' }
    return { jti, aud, claims: payload }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return { fault: 'expired' }
    if (error instanceof errors.JWSSignatureVerificationFailed) return { fault: 'signature' }
    // Any other algorithm counts as a wrong signature.
    if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported)
      return { fault: 'signature' }
    if (error instanceof errors.JOSEError) return { fault: 'malformed' }
    throw error
  }
}

/** The `aud` of a JWT that wasn't verified. */
export function peekAudience(jwt: string): string | undefined {
  if (jwt.length > JWT_BYTES_MAX || !FORM.test(jwt)) return undefined
  try {
    const { aud } = decodeJwt(jwt)
    return typeof aud === 'string' ? aud : undefined
  } catch {
    return undefined
  }
}

function isCanonical(jwt: string): boolean {
  // An empty signature (alg none), or one of another length, is refused for its form. The header's `alg` is checked
  // below.
  const parts = jwt.split('.')
  return (
    parts.length === 3 &&
    parts.every(part => /^[A-Za-z0-9_-]*$/.test(part) && Buffer.from(part, 'base64url').toString('base64url') === part)
  )
}
