// Capture keys: the key pairs to which callers encrypt cards and blocks. A private half leaves this file only sealed
// (private-half.ts), and is opened only into a `KeyObject` or a `Secret`. The store holds the keys.
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { PrivateKey } from 'openpgp'
import { ConfigError } from '../../config.ts'
import { assert, Fault } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { thumbprintOf } from '../client-key.ts'
import { openJwe, sealJwe } from '../jwe.ts'
import { JWE_ALG, type JweKeyType, jweTypeOf, RSA_BITS } from '../jwe-key.ts'
import { captureHalfName, type PrivateHalves, type StoredPrivateHalf } from '../private-half.ts'

export const CAPTURE_KEY_TYPES = ['jwe-rsa', 'jwe-ec', 'pgp'] as const
export type CaptureKeyType = (typeof CAPTURE_KEY_TYPES)[number]

export interface CaptureKeyRecord extends StoredPrivateHalf {
  alias: string
  type: CaptureKeyType
  /** A JWK as JSON, or OpenPGP armor. */
  publicKey: string
}

interface JweCaptureKey {
  alias: string
  type: JweKeyType
  privateKey: KeyObject
  /** The thumbprint of RFC 7638. */
  kid: string
}

interface PgpCaptureKey {
  alias: string
  type: 'pgp'
  privateKey: Secret<PrivateKey>
  /** The ids of the key and its subkeys, lower-case hex. */
  keyIds: readonly string[]
}

export type CaptureKey = JweCaptureKey | PgpCaptureKey

/** OpenPGP is loaded for keys of that type alone. */
const loadPgp = () => import('../pgp/pgp-key.ts')

/** Makes a new pair: RSA 2048, P-256, or OpenPGP on curve25519. */
export async function makeCaptureKey(
  type: CaptureKeyType,
  alias: string,
  halves: PrivateHalves,
): Promise<CaptureKeyRecord> {
  if (type === 'pgp') return pgpRecord(alias, await (await loadPgp()).makePgpKey(alias), halves)
  const { privateKey } =
    type === 'jwe-rsa'
      ? await promisify(generateKeyPair)('rsa', { modulusLength: RSA_BITS.least, publicExponent: 0x10001 })
      : await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  return jweRecord(alias, type, privateKey, halves)
}

/**
 * Imports a pair that was made elsewhere: a private JWK, a PKCS #8 PEM or an armored OpenPGP private key. Throws
 * `ConfigError` if the text is none of these, if the key is too weak or isn't of `type`, or if the passphrase is wrong.
 */
export async function importCaptureKey(
  text: Secret,
  alias: string,
  type: CaptureKeyType | undefined,
  halves: PrivateHalves,
  passphrase?: Secret,
): Promise<CaptureKeyRecord> {
  const isPgp = text.reveal().includes('-----BEGIN PGP PRIVATE KEY BLOCK-----')
  const record = await (isPgp
    ? pgpRecord(alias, await (await loadPgp()).readPgpKey(text, passphrase), halves)
    : importJweKey(readPrivateKey(text, passphrase), alias, halves))
  if (type !== undefined && type !== record.type)
    throw new ConfigError(`this key is of type ${record.type}, not ${type}`)
  return record
}

/** Opens the private half. Throws `Fault('key_unavailable')` if it can't be opened. */
export async function openCaptureKey(
  { alias, type, ...half }: Pick<CaptureKeyRecord, 'alias' | 'type'> & StoredPrivateHalf,
  halves: PrivateHalves,
): Promise<CaptureKey> {
  // Here, because the absence of the package is no fault of the key.
  if (type === 'pgp') await loadPgp()
  const raw = await halves.open(half, captureHalfName(type, alias))
  try {
    if (type === 'pgp') {
      const { openPgpKey, pgpIdsOfKey } = await loadPgp()
      const privateKey = await openPgpKey(raw)
      return { alias, type, privateKey, keyIds: pgpIdsOfKey(privateKey) }
    }
    const privateKey = createPrivateKey({ key: raw, format: 'der', type: 'pkcs8' })
    return { alias, type, privateKey, kid: thumbprintOf(createPublicKey(privateKey)) }
  } catch (cause) {
    throw new Fault('key_unavailable', cause)
  } finally {
    raw.fill(0)
  }
}

function importJweKey(privateKey: KeyObject, alias: string, halves: PrivateHalves): Promise<CaptureKeyRecord> {
  const type = jweTypeOf(privateKey)
  if (!type) throw new ConfigError('a JWE key is RSA of 2048 to 4096 bits, P-256 or X25519')
  // Encrypts and decrypts a probe: else a JWK whose halves don't belong together would be noticed only with a
  // customer's card.
  const probe = sealJwe(Buffer.from('probe'), createPublicKey(privateKey), {})
  if (!openJwe(probe, privateKey, JWE_ALG[type], probe.length))
    throw new ConfigError('the halves of this key do not match')
  return jweRecord(alias, type, privateKey, halves)
}

async function jweRecord(
  alias: string,
  type: JweKeyType,
  privateKey: KeyObject,
  halves: PrivateHalves,
): Promise<CaptureKeyRecord> {
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' })
  const publicKey = JSON.stringify({ ...jwk, kid: alias, alg: JWE_ALG[type], use: 'enc' })
  const raw = privateKey.export({ format: 'der', type: 'pkcs8' })
  return { alias, type, publicKey, ...(await sealHalf(raw, alias, type, halves)) }
}

async function pgpRecord(alias: string, key: Secret<PrivateKey>, halves: PrivateHalves): Promise<CaptureKeyRecord> {
  const raw = Buffer.from(key.reveal().write())
  const publicKey = key.reveal().toPublic().armor()
  return { alias, type: 'pgp', publicKey, ...(await sealHalf(raw, alias, 'pgp', halves)) }
}

function sealHalf(raw: Buffer, alias: string, type: CaptureKeyType, halves: PrivateHalves): Promise<StoredPrivateHalf> {
  assert(/^[!-~]{1,128}$/.test(alias), 'an alias is printable')
  return halves.seal(raw, captureHalfName(type, alias))
}

function readPrivateKey(text: Secret, passphrase: Secret | undefined): KeyObject {
  const source = text.reveal().trim()
  try {
    if (source.startsWith('{')) return createPrivateKey({ key: JSON.parse(source), format: 'jwk' })
    return createPrivateKey({ key: source, format: 'pem', ...(passphrase ? { passphrase: passphrase.reveal() } : {}) })
  } catch {
    // The library's error isn't passed on, because it may quote the key.
    throw new ConfigError('not a private JWK, PKCS #8 PEM or armored OpenPGP private key, or the passphrase is wrong')
  }
}
