// Mastercard's signature and field-level encryption, by the packages that Mastercard publishes for them. RSA is left to
// Node: the package's is plain JavaScript and holds the event loop, for 2 ms to encrypt and 30 ms to decrypt, where
// Node's takes a fraction of one. It stores no key.
import {
  constants,
  createDecipheriv,
  createPrivateKey,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { createRequire } from 'node:module'
import OAuth from 'mastercard-oauth1-signer'
import { z } from 'zod'

export interface MastercardKeys {
  consumerKey: string
  signingKey: KeyObject
  /** PEM: the network's certificate, which cards are encrypted to. */
  encryptionCertificate: string
  /** Ours, which the network encrypts to. */
  decryptionKey: KeyObject
}

/** PEM → key. Throws what Node throws. */
export function readRsaKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'rsa') throw new TypeError('not an RSA key')
  return key
}

export function readCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem)
}

/** The `Authorization` of a request: OAuth 1.0a with a hash of the body, RSA-SHA256. */
export function signRequest(keys: MastercardKeys, method: 'POST', url: string, body: string): string {
  // The package only hands the key on to node:crypto, which takes a KeyObject; a text would be parsed at every call.
  const key = keys.signingKey as unknown as string
  return OAuth.getAuthorizationHeader(url, method, body, keys.consumerKey, key, OAuth.SignatureMethod.RSA_SHA256)
}

export type EncryptPayload = (payload: unknown) => EncryptedPayload

/** How MDES wraps what it encrypts: everything in hex. */
export const EncryptedPayload = z.object({
  encryptedData: z.string().regex(/^([0-9a-f]{2}){16,8192}$/i),
  encryptedKey: z.string().regex(/^([0-9a-f]{2}){128,512}$/i),
  iv: z
    .string()
    .regex(/^[0-9a-f]{32}$/i)
    .optional(),
  // Absent would mean PKCS #1 v1.5, whose padding tells too much to whoever can try.
  oaepHashingAlgorithm: z.enum(['SHA256', 'SHA512']),
  publicKeyFingerprint: z.string().max(128).optional(),
})
export type EncryptedPayload = z.infer<typeof EncryptedPayload>

// The package has no types; this is all that is used of it. Texts are binary: a character is a byte.
interface ClientEncryption {
  FieldLevelEncryption: new (
    config: Record<string, unknown>,
  ) => {
    crypto: {
      encryptData(
        options: { data: unknown },
        params: { iv: string; secretKey: string; encryptedKey: string },
      ): EncryptedPayload
    }
  }
}
const require = createRequire(import.meta.url)

/** Encrypts to the certificate: AES-128-CBC under a fresh key, that key by RSA-OAEP with SHA-256. */
export function openEncryption(certificate: string): EncryptPayload {
  const { FieldLevelEncryption } = require('mastercard-client-encryption') as ClientEncryption
  const encryption = new FieldLevelEncryption({
    paths: [
      {
        path: '.*',
        toEncrypt: [{ element: 'encryptedPayload.encryptedData', obj: 'encryptedPayload' }],
        toDecrypt: [],
      },
    ],
    encryptionCertificate: certificate,
    useCertificateContent: true,
    oaepPaddingDigestAlgorithm: 'SHA-256',
    dataEncoding: 'hex',
    encryptedValueFieldName: 'encryptedData',
    encryptedKeyFieldName: 'encryptedKey',
    ivFieldName: 'iv',
    oaepHashingAlgorithmFieldName: 'oaepHashingAlgorithm',
    publicKeyFingerprintFieldName: 'publicKeyFingerprint',
    publicKeyFingerprintType: 'publicKey',
  })
  const key = new X509Certificate(certificate).publicKey
  return payload => {
    const secret = randomBytes(16)
    const wrapped = publicEncrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, secret)
    return encryption.crypto.encryptData(
      { data: payload },
      {
        iv: randomBytes(16).toString('latin1'),
        secretKey: secret.toString('latin1'),
        encryptedKey: wrapped.toString('latin1'),
      },
    )
  }
}

/** The JSON inside, or undefined for whatever reason it can't be opened. CBC has no tag: it proves no origin. */
export function openPayload(key: KeyObject, payload: EncryptedPayload): unknown {
  try {
    const wrapped = Buffer.from(payload.encryptedKey, 'hex')
    const oaepHash = payload.oaepHashingAlgorithm === 'SHA512' ? 'sha512' : 'sha256'
    const secret = privateDecrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash }, wrapped)
    const cipher = secret.length === 32 ? 'aes-256-cbc' : 'aes-128-cbc'
    const decipher = createDecipheriv(cipher, secret, Buffer.from(payload.iv ?? '00'.repeat(16), 'hex'))
    const text = Buffer.concat([decipher.update(Buffer.from(payload.encryptedData, 'hex')), decipher.final()])
    return JSON.parse(text.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}
