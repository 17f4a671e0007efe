// Signatures and encryption by Mastercard's packages and by Node, each held against the other.
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type EncryptedPayload,
  type MastercardKeys,
  openEncryption,
  openPayload,
  readRsaKey,
  signRequest,
} from '../../src/scheme/mastercard.ts'
import { openKeys, type SimulatorKeys } from '../../src/simulate/scheme/keys.ts'
import { openSecurity, type Security } from '../../src/simulate/scheme/security.ts'

const require = createRequire(import.meta.url)
const URL_OF_IT = 'https://api.example.com/mdes/digitization/static/1/0/tokenize'
const BODY = '{"requestId":"1"}'
let folder: string
let theirs: SimulatorKeys
let ours: MastercardKeys
let security: Security

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'mastercard-'))
  theirs = openKeys(folder)
  ours = {
    consumerKey: theirs.consumerKey,
    signingKey: readRsaKey(readFileSync(join(folder, 'signing.key'), 'utf8')),
    encryptionCertificate: theirs.networkCertificate,
    decryptionKey: readRsaKey(readFileSync(join(folder, 'decryption.key'), 'utf8')),
  }
  security = openSecurity(theirs)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a signature', () => {
  const request = (authorization: string | undefined, changed: object = {}) => ({
    method: 'POST',
    url: URL_OF_IT,
    body: BODY,
    authorization,
    ...changed,
  })
  const sign = () => signRequest(ours, 'POST', URL_OF_IT, BODY)

  it('holds once', () => {
    const authorization = sign()
    expect(security.checkSignature(request(authorization), Date.now())).toBe('valid')
    expect(security.checkSignature(request(authorization), Date.now())).toBe('replayed')
  })

  it.each([
    ['another body', { body: '{"requestId":"2"}' }],
    ['another path', { url: URL_OF_IT.replace('tokenize', 'delete') }],
    ['another query', { url: `${URL_OF_IT}?a=b` }],
    ['another host', { url: URL_OF_IT.replace('api', 'evil') }],
    ['another method', { method: 'PUT' }],
    ['none', { authorization: undefined }],
    ['half of it', { authorization: 'OAuth oauth_version="1.0"' }],
  ])('does not hold for %s', (_, changed) => {
    expect(security.checkSignature(request(sign(), changed), Date.now())).toBe('wrong')
  })

  it('does not hold by another key, of another consumer, or after minutes', () => {
    const other = { ...ours, signingKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey }
    const forged = signRequest(other, 'POST', URL_OF_IT, BODY)
    expect(security.checkSignature(request(forged), Date.now())).toBe('wrong')
    const stranger = signRequest({ ...ours, consumerKey: 'stranger' }, 'POST', URL_OF_IT, BODY)
    expect(security.checkSignature(request(stranger), Date.now())).toBe('wrong')
    expect(security.checkSignature(request(sign()), Date.now() + 301_000)).toBe('wrong')
  })
})

describe('a payload', () => {
  const content = { cardAccountData: { accountNumber: '5555555555554444' }, name: 'Łódź' }

  it('that we encrypt is opened by the package and by Node alike', () => {
    const payload = openEncryption(theirs.networkCertificate)(content)
    expect(security.decrypt(payload)).toEqual(content)
    expect(openPayload(theirs.network, payload)).toEqual(content)
    expect(openWithPackage(payload)).toEqual(content)
    expect(security.disagreements()).toBe(0)
    expect(JSON.stringify(payload)).not.toContain('5555')
    expect(payload).toMatchObject({
      oaepHashingAlgorithm: 'SHA256',
      publicKeyFingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  it('that they encrypt is opened by us', () => {
    expect(openPayload(ours.decryptionKey, security.encrypt(content) as EncryptedPayload)).toEqual(content)
  })

  it('that is for another key, torn or altered in its key is not opened, and says no more', () => {
    const payload = openEncryption(theirs.networkCertificate)(content)
    expect(openPayload(ours.decryptionKey, payload)).toBeUndefined()
    expect(
      openPayload(theirs.network, { ...payload, encryptedData: payload.encryptedData.slice(0, 64) }),
    ).toBeUndefined()
    const altered = payload.encryptedKey.replace(/^../, byte => (byte === '00' ? '01' : '00'))
    expect(openPayload(theirs.network, { ...payload, encryptedKey: altered })).toBeUndefined()
  })

  function openWithPackage(payload: EncryptedPayload): unknown {
    const { FieldLevelEncryption } = require('mastercard-client-encryption') as {
      FieldLevelEncryption: new (config: object) => { decrypt(response: object): { decrypted: unknown } }
    }
    const encryption = new FieldLevelEncryption({
      paths: [{ path: '.*', toEncrypt: [], toDecrypt: [{ element: 'encryptedPayload', obj: 'decrypted' }] }],
      encryptionCertificate: theirs.networkCertificate,
      privateKey: createPrivateKey(theirs.networkPem).export({ type: 'pkcs1', format: 'pem' }),
      useCertificateContent: true,
      oaepPaddingDigestAlgorithm: 'SHA-256',
      dataEncoding: 'hex',
      encryptedValueFieldName: 'encryptedData',
      encryptedKeyFieldName: 'encryptedKey',
      ivFieldName: 'iv',
      oaepHashingAlgorithmFieldName: 'oaepHashingAlgorithm',
    })
    const body = { encryptedPayload: structuredClone(payload) }
    const { decrypted } = encryption.decrypt({ request: { url: '/' }, header: {}, body })
    // The package writes UTF-8 and reads it back as Latin-1.
    return JSON.parse(Buffer.from(JSON.stringify(decrypted), 'latin1').toString('utf8'))
  }
})
