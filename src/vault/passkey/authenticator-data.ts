// Reads what an authenticator says (WebAuthn level 3, section 6.1), and the public key of a new passkey, as COSE (RFC 9053). It
// compares with nothing that was asked, except the domain.
import { createHash } from 'node:crypto'
import { type DecodeOptions, decode, decodeFirst } from 'cborg'

export interface AuthenticatorData {
  /** SHA-256 of the domain to which the passkey is bound. */
  rpIdHash: Buffer
  isPresent: boolean
  /** The authenticator knows its user: by PIN, finger or face. */
  isVerified: boolean
  signCount: number
  /** Of a new passkey only. */
  made: { credentialId: Buffer; coseKey: Map<unknown, unknown> } | undefined
}

const FLAGS = { present: 0x01, verified: 0x04, made: 0x40, extended: 0x80 } as const
const HEAD_BYTES = 37
const CREDENTIAL_ID_BYTES_MAX = 1_023

/** CTAP's canonical form: no indefinite lengths, no tags, no repeated keys. */
const CANONICAL: DecodeOptions = {
  useMaps: true,
  strict: true,
  allowIndefinite: false,
  allowUndefined: false,
  rejectDuplicateMapKeys: true,
}

/** Undefined for anything but whole authenticator data: no byte may be left over. */
export function readAuthenticatorData(bytes: Buffer): AuthenticatorData | undefined {
  if (bytes.length < HEAD_BYTES) return undefined
  const flags = bytes.readUInt8(32)
  const has = (flag: number) => (flags & flag) !== 0
  try {
    const { made, rest: behindKey } = has(FLAGS.made)
      ? readMade(bytes.subarray(HEAD_BYTES))
      : { made: undefined, rest: bytes.subarray(HEAD_BYTES) }
    const { value: extensions, rest } = has(FLAGS.extended) ? first(behindKey) : { value: new Map(), rest: behindKey }
    if (rest.length > 0 || !(extensions instanceof Map)) return undefined
    return {
      rpIdHash: bytes.subarray(0, 32),
      isPresent: has(FLAGS.present),
      isVerified: has(FLAGS.verified),
      signCount: bytes.readUInt32BE(33),
      made,
    }
  } catch {
    return undefined
  }
}

export function isOfDomain({ rpIdHash }: AuthenticatorData, rpId: string): boolean {
  return rpIdHash.equals(createHash('sha256').update(rpId).digest())
}

/** The authenticator data in an attestation object; undefined for anything else. */
export function authenticatorDataIn(attestationObject: Buffer): Buffer | undefined {
  try {
    const object: unknown = decode(attestationObject, CANONICAL)
    const data: unknown = object instanceof Map ? object.get('authData') : undefined
    return data instanceof Uint8Array ? Buffer.from(data) : undefined
  } catch {
    return undefined
  }
}

/** Behind the head: AAGUID (16 bytes), the id with its length (2 bytes), the public key. Throws if it isn't so. */
function readMade(bytes: Buffer): { made: NonNullable<AuthenticatorData['made']>; rest: Buffer } {
  const length = bytes.readUInt16BE(16)
  const credentialId = bytes.subarray(18, 18 + length)
  if (length === 0 || length > CREDENTIAL_ID_BYTES_MAX || credentialId.length !== length) throw new Error('cut off')
  const { value, rest } = first(bytes.subarray(18 + length))
  if (!(value instanceof Map)) throw new Error('no key')
  return { made: { credentialId: Buffer.from(credentialId), coseKey: value }, rest }
}

function first(bytes: Buffer): { value: unknown; rest: Buffer } {
  const [value, rest] = decodeFirst(bytes, CANONICAL) as [unknown, Uint8Array]
  return { value, rest: Buffer.from(rest) }
}

export type PasskeyAlgorithm = 'ES256' | 'EdDSA' | 'RS256'

export interface PasskeyKey {
  alg: PasskeyAlgorithm
  publicJwk: Record<string, unknown>
}

/** The numbers of IANA's registries: key types, algorithms, curves, and the labels of a key's parameters. */
const COSE = { kty: 1, alg: 3, first: -1, second: -2, third: -3 } as const

/** A COSE key as a JWK; undefined for a key of another algorithm than the three. Whether it is a key is checked elsewhere. */
export function jwkOf(coseKey: Map<unknown, unknown>): PasskeyKey | undefined {
  const of = (label: number) => coseKey.get(label)
  const text = (label: number) => {
    const value = of(label)
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64url') : undefined
  }
  const is = (kty: number, alg: number) => of(COSE.kty) === kty && of(COSE.alg) === alg
  const [x, y] = [text(COSE.second), text(COSE.third)]
  if (is(2, -7) && of(COSE.first) === 1 && x !== undefined && y !== undefined)
    return { alg: 'ES256', publicJwk: { kty: 'EC', crv: 'P-256', x, y } }
  if (is(1, -8) && of(COSE.first) === 6 && x !== undefined)
    return { alg: 'EdDSA', publicJwk: { kty: 'OKP', crv: 'Ed25519', x } }
  const n = text(COSE.first)
  if (is(3, -257) && n !== undefined && x !== undefined) return { alg: 'RS256', publicJwk: { kty: 'RSA', n, e: x } }
  return undefined
}
