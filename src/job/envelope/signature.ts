// Compact JWS (RFC 7515) with the four algorithms of the contract, on node:crypto. It signs synchronously; a library
// would use the thread pool, which takes four times as long (docs/decisions/own-implementations.md, JWS). The caller
// chooses the key and the algorithm.
import { constants, type KeyObject, sign, verify } from 'node:crypto'

export const ALGORITHMS = ['EdDSA', 'ES256', 'PS256', 'RS256'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

interface Scheme {
  digest: string | null
  /** Undefined: the key is passed alone, which node:crypto takes 10 µs faster. */
  options: object | undefined
  fits: (key: KeyObject) => boolean
}

const isRsa = (key: KeyObject) =>
  key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= 2048

const SCHEMES = {
  // RFC 8037
  EdDSA: { digest: null, options: undefined, fits: key => key.asymmetricKeyType === 'ed25519' },
  // RFC 7518 3.4: the signature is the two integers one after the other, not their DER encoding.
  ES256: {
    digest: 'sha256',
    options: { dsaEncoding: 'ieee-p1363' },
    fits: key => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  },
  // RFC 7518 3.5: the salt is as long as the digest.
  PS256: { digest: 'sha256', options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }, fits: isRsa },
  // RFC 7518 3.3
  RS256: { digest: 'sha256', options: { padding: constants.RSA_PKCS1_PADDING }, fits: isRsa },
} as const satisfies Record<Algorithm, Scheme>

const encode = (text: string | Buffer) => (typeof text === 'string' ? Buffer.from(text) : text).toString('base64url')

/** Signs `payload` as a compact JWS. Throws if the key doesn't fit the algorithm. */
export function signCompact(
  header: { alg: Algorithm; kid: string; typ: string },
  payload: string | Buffer,
  privateKey: KeyObject,
): string {
  const { digest, options, fits } = SCHEMES[header.alg]
  if (!fits(privateKey)) throw new TypeError(`not a key for ${header.alg}`)
  const input = `${encode(JSON.stringify(header))}.${encode(payload)}`
  const signature = sign(digest, Buffer.from(input, 'latin1'), options ? { key: privateKey, ...options } : privateKey)
  return `${input}.${signature.toString('base64url')}`
}

/**
 * Whether the signature's base64url is canonical. Otherwise the same signature would have several texts, and the
 * envelope several digests.
 */
export function hasCanonicalSignature(jws: string): boolean {
  const text = jws.slice(jws.lastIndexOf('.') + 1)
  return Buffer.from(text, 'base64url').toString('base64url') === text
}

/** Whether `key` made this signature with the algorithm that was fixed when the key was registered. */
export function verifyCompact(jws: string, key: { alg: Algorithm; publicKey: KeyObject }): boolean {
  const { digest, options, fits } = SCHEMES[key.alg]
  const cut = jws.lastIndexOf('.')
  const signature = Buffer.from(jws.slice(cut + 1), 'base64url')
  if (cut < 0 || !fits(key.publicKey) || !hasCanonicalSignature(jws)) return false
  const { publicKey } = key
  const input = Buffer.from(jws.slice(0, cut), 'latin1')
  return verify(digest, input, options ? { key: publicKey, ...options } : publicKey, signature)
}
