// The network's side of signatures and encryption, made with Mastercard's own packages. The package that signs requests
// also builds the base string that is verified here. The package that encrypts decrypts a sample of payloads;
// node:crypto decrypts all of them, because the package takes tens of milliseconds for one.
import {
  constants,
  createDecipheriv,
  createHmac,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
  verify,
  X509Certificate,
} from 'node:crypto'
import { createRequire } from 'node:module'
import { isDeepStrictEqual } from 'node:util'
import OAuth from 'mastercard-oauth1-signer'
import { z } from 'zod'
import type { SimulatorKeys } from './keys.ts'

interface SignedRequest {
  method: string
  url: string
  body: string
  authorization: string | undefined
}

type Signature = 'valid' | 'wrong' | 'replayed'

export interface Security {
  checkSignature(request: SignedRequest, now: number): Signature
  /** Decrypts what the requestor encrypted to the network; undefined if it can't be decrypted. */
  decrypt(payload: unknown): unknown
  /** Encrypts to the requestor. */
  encrypt(payload: unknown): Record<string, string>
  fingerprint(pan: string): string
  /** How many payloads the package decrypted differently than node:crypto. */
  disagreements(): number
}

// Exports of the package that its types don't declare: the steps of its signing.
interface SigningSteps {
  extractQueryParams(url: string): Map<string, Set<string>>
  getBaseUriString(url: string): string
  getBodyHash(body: string): string
  getSignatureBaseString(method: string, baseUri: string, params: string): string
  toOAuthParamString(query: Map<string, Set<string>>, oauth: Map<string, string>): string
}
const steps = OAuth as unknown as SigningSteps

interface Encryption {
  FieldLevelEncryption: new (
    config: Record<string, unknown>,
  ) => {
    crypto: {
      encryptData(
        options: { data: unknown },
        params: { iv: string; secretKey: string; encryptedKey: string },
      ): Record<string, string>
    }
    decrypt(response: object): { decrypted: unknown }
  }
}
const require = createRequire(import.meta.url)

const CLOCK_SECONDS_MAX = 300
const NONCES_MAX = 200_000
const SAMPLED = 100

const Encrypted = z.object({
  encryptedData: z.string().regex(/^[0-9a-f]+$/i),
  encryptedKey: z.string().regex(/^[0-9a-f]+$/i),
  iv: z.string().regex(/^[0-9a-f]{32}$/i),
  oaepHashingAlgorithm: z.literal('SHA256'),
})

export function openSecurity(keys: SimulatorKeys): Security {
  const { FieldLevelEncryption } = require('mastercard-client-encryption') as Encryption
  const common = {
    oaepPaddingDigestAlgorithm: 'SHA-256',
    dataEncoding: 'hex',
    encryptedValueFieldName: 'encryptedData',
    encryptedKeyFieldName: 'encryptedKey',
    ivFieldName: 'iv',
    oaepHashingAlgorithmFieldName: 'oaepHashingAlgorithm',
    publicKeyFingerprintFieldName: 'publicKeyFingerprint',
    publicKeyFingerprintType: 'publicKey',
    useCertificateContent: true,
  }
  const outgoing = new FieldLevelEncryption({
    ...common,
    encryptionCertificate: keys.requestorCertificate,
    paths: [
      {
        path: '.*',
        toEncrypt: [{ element: 'encryptedPayload.encryptedData', obj: 'encryptedPayload' }],
        toDecrypt: [],
      },
    ],
  })
  const incoming = new FieldLevelEncryption({
    ...common,
    encryptionCertificate: keys.networkCertificate,
    privateKey: keys.networkPem,
    paths: [{ path: '.*', toEncrypt: [], toDecrypt: [{ element: 'encryptedPayload', obj: 'decrypted' }] }],
  })
  const requestorKey = new X509Certificate(keys.requestorCertificate).publicKey
  const nonces = new Set<string>()
  let opened = 0
  let disagreements = 0

  function openWithPackage(payload: unknown): unknown {
    const body = { encryptedPayload: structuredClone(payload) }
    const { decrypted } = incoming.decrypt({ request: { url: '/' }, header: {}, body })
    // The package writes UTF-8 but reads it back as Latin-1.
    return JSON.parse(Buffer.from(JSON.stringify(decrypted), 'latin1').toString('utf8')) as unknown
  }

  return {
    checkSignature: ({ method, url, body, authorization }, now) => {
      const params = readAuthorization(authorization)
      const signature = params?.get('oauth_signature')
      if (params === undefined || signature === undefined) return 'wrong'
      params.delete('oauth_signature')
      const base = steps.getSignatureBaseString(
        method,
        steps.getBaseUriString(url),
        steps.toOAuthParamString(steps.extractQueryParams(url), params),
      )
      const seconds = Number(params.get('oauth_timestamp'))
      const holds =
        params.get('oauth_consumer_key') === keys.consumerKey &&
        params.get('oauth_signature_method') === 'RSA-SHA256' &&
        params.get('oauth_body_hash') === steps.getBodyHash(body) &&
        Math.abs(now / 1_000 - seconds) <= CLOCK_SECONDS_MAX &&
        verify('sha256', Buffer.from(base), keys.signing, Buffer.from(decodeURIComponent(signature), 'base64'))
      if (!holds) return 'wrong'
      const nonce = `${seconds} ${params.get('oauth_nonce')}`
      if (nonces.has(nonce)) return 'replayed'
      nonces.add(nonce)
      if (nonces.size > NONCES_MAX) for (const oldest of [...nonces].slice(0, NONCES_MAX / 2)) nonces.delete(oldest)
      return 'valid'
    },
    decrypt: payload => {
      const parsed = Encrypted.safeParse(payload)
      if (!parsed.success) return undefined
      try {
        const key = privateDecrypt(
          { key: keys.network, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
          Buffer.from(parsed.data.encryptedKey, 'hex'),
        )
        const decipher = createDecipheriv('aes-128-cbc', key, Buffer.from(parsed.data.iv, 'hex'))
        const text = decipher.update(parsed.data.encryptedData, 'hex', 'utf8') + decipher.final('utf8')
        const content = JSON.parse(text) as unknown
        if (opened++ % SAMPLED !== 0 || isDeepStrictEqual(openWithPackage(payload), content)) return content
        disagreements += 1
        return undefined
      } catch {
        return undefined
      }
    },
    encrypt: payload => {
      const secret = randomBytes(16)
      const wrapped = publicEncrypt(
        { key: requestorKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
        secret,
      )
      const params = {
        iv: randomBytes(16).toString('latin1'),
        secretKey: secret.toString('latin1'),
        encryptedKey: wrapped.toString('latin1'),
      }
      return outgoing.crypto.encryptData({ data: payload }, params)
    },
    fingerprint: pan => createHmac('sha256', keys.fingerprint).update(pan).digest('hex').slice(0, 32),
    disagreements: () => disagreements,
  }
}

/** Parses `OAuth a="1",b="2"`. Values stay as they are, because the base string contains them unchanged. */
function readAuthorization(header: string | undefined): Map<string, string> | undefined {
  if (header === undefined || !header.startsWith('OAuth ') || header.length > 4_096) return undefined
  const params = new Map<string, string>()
  for (const part of header.slice('OAuth '.length).split(',')) {
    const match = /^\s*(oauth_[a-z_]+)="([^"]*)"\s*$/.exec(part)
    if (match?.[1] === undefined || match[2] === undefined || params.has(match[1])) return undefined
    params.set(match[1], match[2])
  }
  return params
}
