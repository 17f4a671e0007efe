// The keys of a rehearsal: both halves of every pair, made at the first start and kept, and the scheme file with which
// tokenmill calls this simulator. A real network hands out only its half, and does so by hand.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from './certificate.ts'

export interface SimulatorKeys {
  /** The requestor's public key, which verifies its signatures. */
  signing: KeyObject
  consumerKey: string
  /** The simulator's private key; the requestor encrypts cards to its public half. */
  network: KeyObject
  networkPem: string
  networkCertificate: string
  /** The requestor's certificate, to which the simulator encrypts answers. */
  requestorCertificate: string
  notificationSecret: string
  thirdPartyToken: string
  /** The key with which PANs are hashed; only the hashes are kept. */
  fingerprint: Buffer
}

export const TOKEN_REQUESTOR_ID = '50110000001'
export const CONTRACT = '00000000-0000-4000-8000-000000000001'
const CONSUMER_KEY = 'tokenmill-simulator'
const DAYS = 3_650

export function openKeys(folder: string): SimulatorKeys {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pair = (key: string, certificate?: string) => {
    const path = join(folder, key)
    if (!existsSync(path)) {
      const made = generateKeyPairSync('rsa', { modulusLength: 2048 })
      // The certificate is written first, so a key that exists always has its certificate.
      if (certificate !== undefined)
        keep(folder, certificate, makeCertificate({ ...made, commonName: certificate, now: Date.now(), days: DAYS }))
      keep(folder, key, made.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString())
    }
    return readFileSync(path, 'utf8')
  }
  const secret = (name: string) => {
    const path = join(folder, name)
    if (!existsSync(path)) keep(folder, name, `${randomBytes(24).toString('base64url')}\n`)
    return readFileSync(path, 'utf8').trim()
  }
  const signingPem = pair('signing.key')
  const networkPem = pair('network.key', 'network.crt')
  pair('decryption.key', 'requestor.crt')
  return {
    signing: createPublicKey(signingPem),
    consumerKey: CONSUMER_KEY,
    network: createPrivateKey(networkPem),
    networkPem,
    networkCertificate: readFileSync(join(folder, 'network.crt'), 'utf8'),
    requestorCertificate: readFileSync(join(folder, 'requestor.crt'), 'utf8'),
    notificationSecret: secret('notification.secret'),
    thirdPartyToken: secret('third-party.token'),
    fingerprint: Buffer.from(secret('fingerprint.key')),
  }
}

interface SchemeFileOptions {
  url: string
  ratePerSecond: number
}

/** Writes `scheme.json` at every start, because port and rate may change. Returns its path. */
export function writeSchemeFile(folder: string, { url, ratePerSecond }: SchemeFileOptions): string {
  const file = {
    mdes: {
      baseUrl: `${url}/mdes`,
      consumerKey: CONSUMER_KEY,
      signingKeyFile: 'signing.key',
      encryptionCertFile: 'network.crt',
      decryptionKeyFile: 'decryption.key',
      notificationSecretFile: 'notification.secret',
      tokenRequestorId: TOKEN_REQUESTOR_ID,
      ratePerSecond,
      brands: ['MASTERCARD', 'MAESTRO', 'VISA', 'AMEX', 'DISCOVER', 'DINERS', 'JCB', 'UPI', 'CB'],
    },
    thirdParties: {
      [CONTRACT]: {
        type: 'THIRD_PARTY_1',
        baseUrl: `${url}/third-party`,
        authorization: { scheme: 'bearer', tokenFile: 'third-party.token' },
        ratePerSecond,
        format: {
          errors: {
            card_not_eligible: 'card_ineligible',
            card_declined: 'card_declined',
            card_invalid: 'request_invalid',
            try_again: 'again',
          },
        },
      },
    },
  }
  keep(folder, 'scheme.json', `${JSON.stringify(file, undefined, 2)}\n`)
  return join(folder, 'scheme.json')
}

function keep(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text, { mode: 0o600 })
}
