// Mastercard's request signature and field-level encryption. The packages that Mastercard publishes make the signature's
// header and encrypt; RSA and all of decryption are done by Node: the package's RSA is plain JavaScript and blocks the event
// loop for 2 ms to encrypt and 30 ms to decrypt, while Node takes a fraction of 1 ms. No key is stored here.
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
import type OAuth from 'mastercard-oauth1-signer'
import { z } from 'zod'

export interface MastercardKeys {
  consumerKey: string
  signingKey: KeyObject
  /** The network's certificate, to which cards are encrypted; PEM. */
  encryptionCertificate: string
  /** The installation's private key. The network encrypts its answers to the public half. */
  decryptionKey: KeyObject
}

/** Reads a PEM key. Throws what Node throws. */
export function readRsaKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'rsa') throw new TypeError('not an RSA key')
  return key
}

export function readCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem)
}

const require = createRequire(import.meta.url)

/** The packages are loaded at first use, since most installations reach no network. */
const loadSigner = () => require('mastercard-oauth1-signer') as typeof OAuth

/** The `Authorization` header of a request: OAuth 1.0a with a hash of the body, RSA-SHA256. */
export function signRequest(keys: MastercardKeys, method: 'POST', url: string, body: string): string {
  // The package passes the key to node:crypto, which also takes a KeyObject; a PEM text would be parsed at every call.
  const key = keys.signingKey as unknown as string
  const signer = loadSigner()
  return signer.getAuthorizationHeader(url, method, body, keys.consumerKey, key, signer.SignatureMethod.RSA_SHA256)
}

export type EncryptPayload = (payload: unknown) => EncryptedPayload

/** The form of an encrypted part of an MDES message; all texts are hex. */
export const EncryptedPayload = z.object({
  encryptedData: z.string().regex(/^([0-9a-f]{2}){16,8192}$/i),
  encryptedKey: z.string().regex(/^([0-9a-f]{2}){128,512}$/i),
  iv: z
    .string()
    .regex(/^[0-9a-f]{32}$/i)
    .optional(),
  // Required: without it the padding would be PKCS #1 v1.5, which is open to padding-oracle attacks.
  oaepHashingAlgorithm: z.enum(['SHA256', 'SHA512']),
  publicKeyFingerprint: z.string().max(128).optional(),
})
export type EncryptedPayload = z.infer<typeof EncryptedPayload>

// The types of the package's functions that we use; the package has none. The texts of the encryption's parameters
// are binary: one character is one byte. Those of the answer are hex.
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

/**
 * Returns a function that encrypts to the certificate: AES-128-CBC with a new key each time, and that key by RSA-OAEP
 * with SHA-256.
 */
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

/**
 * Decrypts a payload and parses its JSON; undefined if that fails for any reason. CBC has no authentication tag, so
 * success doesn't prove who sent it.
 */
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
