// An authenticator in software: makes what a real one and Chromium make for a passkey, and on request what they never would.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { encode } from 'cborg'
import type { Assertion, Enrolment } from '../../../src/job/system/act.ts'

export type Algorithm = 'ES256' | 'EdDSA' | 'RS256'

export interface Site {
  origin: string
  rpId: string
}

/** What differs from a proper answer. */
export interface Oddity extends Partial<Site> {
  type?: string
  crossOrigin?: boolean
  topOrigin?: string
  isPresent?: boolean
  isVerified?: boolean
  signCount?: number
  /** Bytes behind the authenticator data. */
  behind?: Buffer
  extensions?: boolean
}

export interface Authenticator {
  credentialId: string
  publicJwk: Record<string, unknown>
  alg: Algorithm
  /** Answers `navigator.credentials.get()`; counts up unless it doesn't count. */
  get(challenge: Buffer, odd?: Oddity): Assertion
  /** Answers `navigator.credentials.create()`. */
  create(challenge: Buffer, odd?: Oddity): Omit<Enrolment, 'signature'>
}

const FLAGS = { present: 0x01, verified: 0x04, backup: 0x18, made: 0x40, extended: 0x80 }

/** `counts`: the authenticator counts its signatures; synchronised passkeys don't, and say 0. */
export function openAuthenticator(site: Site, alg: Algorithm = 'ES256', { counts = true } = {}): Authenticator {
  const { publicKey, privateKey } = makePair(alg)
  const id = randomBytes(32)
  let count = 0
  const clientDataOf = (type: string, challenge: Buffer, odd: Oddity) => {
    const { crossOrigin = false, topOrigin } = odd
    // Chromium's members, in its order; the last one keeps servers from comparing texts.
    const said = {
      type: odd.type ?? type,
      challenge: challenge.toString('base64url'),
      origin: odd.origin ?? site.origin,
      crossOrigin,
      topOrigin,
      other_keys_can_be_added_here: 'do not compare clientDataJSON against a template. See https://goo.gl/yabPex',
    }
    return Buffer.from(JSON.stringify(said))
  }
  const dataOf = (odd: Oddity, made?: Buffer) => {
    const { isPresent = true, isVerified = true, rpId = site.rpId, signCount = counts ? ++count : 0 } = odd
    const flags =
      (isPresent ? FLAGS.present : 0) |
      (isVerified ? FLAGS.verified : 0) |
      (counts ? 0 : FLAGS.backup) |
      (made ? FLAGS.made : 0) |
      (odd.extensions ? FLAGS.extended : 0)
    const head = Buffer.alloc(5)
    head.writeUInt8(flags, 0)
    head.writeUInt32BE(signCount, 1)
    const extensions = odd.extensions ? [Buffer.from(encode({ credProtect: 3 }))] : []
    return Buffer.concat([sha256(rpId), head, ...(made ? [made] : []), ...extensions, odd.behind ?? Buffer.alloc(0)])
  }
  const credentialId = id.toString('base64url')
  return {
    credentialId,
    publicJwk: publicKey.export({ format: 'jwk' }) as Record<string, unknown>,
    alg,
    get(challenge, odd = {}) {
      const clientData = clientDataOf('webauthn.get', challenge, odd)
      const data = dataOf(odd)
      const signature = sign(alg === 'EdDSA' ? null : 'sha256', Buffer.concat([data, sha256(clientData)]), privateKey)
      return {
        credential_id: credentialId,
        client_data_json: clientData.toString('base64url'),
        authenticator_data: data.toString('base64url'),
        signature: signature.toString('base64url'),
      }
    },
    create(challenge, odd = {}) {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(id.length, 0)
      const made = Buffer.concat([Buffer.alloc(16), length, id, Buffer.from(encode(coseOf(publicKey, alg)))])
      const object = { fmt: 'none', attStmt: {}, authData: dataOf({ signCount: 0, ...odd }, made) }
      return {
        credential_id: credentialId,
        client_data_json: clientDataOf('webauthn.create', challenge, odd).toString('base64url'),
        attestation_object: Buffer.from(encode(object)).toString('base64url'),
      }
    },
  }
}

function makePair(alg: Algorithm): { publicKey: KeyObject; privateKey: KeyObject } {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
}

/** The key as COSE, by its numeric labels. */
export function coseOf(publicKey: KeyObject, alg: Algorithm): Map<number, unknown> {
  const { x, y, n, e } = publicKey.export({ format: 'jwk' })
  const bytes = (text: string | undefined) => Buffer.from(text ?? '', 'base64url')
  if (alg === 'ES256') {
    return new Map<number, unknown>([...pairs(2, -7), [-1, 1], [-2, bytes(x)], [-3, bytes(y)]])
  }
  if (alg === 'EdDSA') return new Map<number, unknown>([...pairs(1, -8), [-1, 6], [-2, bytes(x)]])
  return new Map<number, unknown>([...pairs(3, -257), [-1, bytes(n)], [-2, bytes(e)]])
}

const pairs = (kty: number, alg: number): [number, unknown][] => [
  [1, kty],
  [3, alg],
]

const sha256 = (data: Buffer | string) => createHash('sha256').update(data).digest()
