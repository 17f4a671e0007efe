// A key in AWS KMS: AWS's own client against a server that speaks KMS's protocol and checks each signature.

import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KEK_OPENERS } from '../../../cli/open/kek-openers.ts'
import { ConfigError } from '../../../src/config.ts'
import { Fault } from '../../../src/errors.ts'
import { ACCOUNT, type KmsSimulator, startKmsSimulator } from '../../../src/simulate/kms/kms.ts'
import { openKek, shownUri } from '../../../src/vault/kek/openers.ts'
import { closeKmsClients } from '../../../src/vault/kms/client.ts'
import { openKms } from '../../../src/vault/kms/open.ts'
import { canonicalKmsUri, parseKmsUri } from '../../../src/vault/kms/uri.ts'
import { codeOf, itKeepsTheLawOfProviders } from '../kek/provider-law.ts'

const keyId = (last: number) => `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`
const MULTI_REGION = `mrk-${'0123456789abcdef'.repeat(2)}`
const uriOf = (key = keyId(1), { region = 'eu-central-1', account = ACCOUNT } = {}) =>
  `aws-kms://arn:aws:kms:${region}:${account}:key/${key}`
const SECRET = Buffer.from('a data key of thirty-two bytes..')
const QUICK = { answerMs: 2_000, wholeMs: 15_000, attempts: 2 }

let kms: KmsSimulator
const before = { ...process.env }
beforeAll(async () => {
  await closeKmsClients()
  kms = await startKmsSimulator()
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  const files = { AWS_CONFIG_FILE: '/nonexistent', AWS_SHARED_CREDENTIALS_FILE: '/nonexistent' }
  Object.assign(process.env, kms.env, files, { AWS_EC2_METADATA_DISABLED: 'true' })
})
afterEach(() => kms.setTrouble(undefined))
afterAll(async () => {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, before)
  await closeKmsClients()
  await kms.close()
})

describe('a key in KMS', () => {
  itKeepsTheLawOfProviders(
    async () => ({
      kek: await openKek(uriOf(), KEK_OPENERS),
      again: await openKek(uriOf(), KEK_OPENERS),
      other: await openKek(uriOf(keyId(2)), KEK_OPENERS),
    }),
    { bytesMax: 2_000 },
  )

  it('is asked by its ARN, with the purpose as encryption context', async () => {
    const kek = await openKms(uriOf())
    kms.seen.length = 0
    await kek.unwrap(await kek.wrap(SECRET, 'data-key/seal/1'), 'data-key/seal/1')
    const about = { keyId: uriOf().slice('aws-kms://'.length), context: { 'tokenmill-purpose': 'data-key/seal/1' } }
    expect(kms.seen).toEqual([
      { operation: 'TrentService.Encrypt', ...about },
      { operation: 'TrentService.Decrypt', ...about },
    ])
  })

  it('of several Regions is one key, and each replica opens what another one wrapped', async () => {
    const [here, there] = [
      await openKms(uriOf(MULTI_REGION)),
      await openKms(uriOf(MULTI_REGION, { region: 'us-east-1' })),
    ]
    expect(there.id).toBe(here.id)
    expect((await there.unwrap(await here.wrap(SECRET, 'p'), 'p')).equals(SECRET)).toBe(true)
    const [one, other] = ['eu-central-1', 'us-east-1'].map(region => parseKmsUri(uriOf(keyId(1), { region })).id)
    expect(one).not.toBe(other)
  })

  it('is named in one way, and shown whole', () => {
    const uri = uriOf()
    expect(canonicalKmsUri(uri.replace('//', ''))).toBe(uri)
    expect(shownUri(uri, KEK_OPENERS)).toBe(uri)
    expect(parseKmsUri(uri.replace('//', ''))).toEqual(parseKmsUri(uri))
  })

  it.each([
    ['alias', `aws-kms://arn:aws:kms:eu-central-1:${ACCOUNT}:alias/cards`, /names an alias/],
    ['bare id', `aws-kms://${keyId(1)}`, /not the ARN of a key/],
    ['ARN and a query', `${uriOf()}?secret=9876`, /not the ARN of a key/],
    ['ARN of another service', `aws-kms://arn:aws:s3:eu-central-1:${ACCOUNT}:key/${keyId(1)}`, /not the ARN of a key/],
  ])('that is named by its %s is refused', async (_, uri, text) => {
    const error = await openKek(uri, KEK_OPENERS).catch((caught: Error) => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toMatch(text)
    expect(`${error}${shownUri(uri, KEK_OPENERS)}`).not.toContain('9876')
  })
})

describe('a key in KMS that a person has to correct', () => {
  it.each([
    [
      'AccessDeniedException',
      'User: arn:aws:iam::1:user/canary is not authorized',
      /allow kms:Encrypt and kms:Decrypt/,
    ],
    ['NotFoundException', 'Key canary does not exist', /no such key: compare region, account and key id/],
    ['DisabledException', 'canary is disabled.', /enable it in KMS/],
    ['KMSInvalidStateException', 'canary is pending deletion.', /cancel that at once/],
    ['KMSInvalidStateException', 'canary is pending import.', /import the same material again/],
    ['InvalidKeyUsageException', 'canary key usage is SIGN_VERIFY', /SYMMETRIC_DEFAULT/],
    ['UnrecognizedClientException', 'The security token canary is invalid.', /correct them/],
  ])('is refused at the start, and away for a process that runs: %s', async (type, message, text) => {
    const kek = await openKms(uriOf())
    const wrapped = await kek.wrap(SECRET, 'p')
    kms.setTrouble({ status: 400, type, message })
    const error = await openKms(uriOf()).catch((caught: Error) => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toMatch(text)
    expect(String(error)).toMatch(new RegExp(`${uriOf()}: .*\\(${type}, request [0-9a-f-]{36}\\)`))
    // The text of AWS's error is left out, because it may hold anything.
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('canary')
    expect(await codeOf(kek.unwrap(wrapped, 'p'))).toBe('kek_away')
    kms.setTrouble(undefined)
    expect((await kek.unwrap(wrapped, 'p')).equals(SECRET)).toBe(true)
  })

  it('is refused in an account whose keys these credentials may not use', async () => {
    await expect(openKms(uriOf(keyId(1), { account: '999988887777' }))).rejects.toThrow(
      /compare the account in the ARN/,
    )
  })

  it('is refused with wrong credentials', async () => {
    process.env['AWS_SECRET_ACCESS_KEY'] = 'another one'
    try {
      await expect(openKms(uriOf(keyId(1), { region: 'eu-west-2' }))).rejects.toThrow(/InvalidSignatureException/)
    } finally {
      Object.assign(process.env, kms.env)
    }
  })

  it('is never asked over plain HTTP on another host', async () => {
    process.env['AWS_ENDPOINT_URL_KMS'] = 'http://kms.example'
    try {
      await expect(openKms(uriOf(keyId(1), { region: 'eu-west-3' }))).rejects.toThrow(/sent in clear text/)
    } finally {
      Object.assign(process.env, kms.env)
    }
  })
})

describe('KMS that is away', () => {
  it.each([
    ['ThrottlingException', 400],
    ['LimitExceededException', 400],
    ['KMSInternalException', 500],
    ['DependencyTimeoutException', 503],
    ['KeyUnavailableException', 500],
    ['KMSInvalidStateException', 400],
    ['ExpiredTokenException', 400],
  ])('%s is waited for, and then opens what was wrapped before', async (type, status) => {
    const kek = await openKms(uriOf(), QUICK)
    const wrapped = await kek.wrap(SECRET, 'p')
    kms.setTrouble({ status, type, message: 'try again' })
    const fault = await openKms(uriOf(), QUICK).catch((caught: Fault) => caught)
    expect(fault).toMatchObject({ code: 'kek_away', cause: { message: expect.stringContaining(type) } })
    expect(await codeOf(kek.unwrap(wrapped, 'p'))).toBe('kek_away')
    kms.setTrouble(undefined)
    expect((await kek.unwrap(wrapped, 'p')).equals(SECRET)).toBe(true)
  })

  it('is waited for without credentials, which the role of a host gives late', async () => {
    delete process.env['AWS_SECRET_ACCESS_KEY']
    try {
      const fault = await openKms(uriOf(keyId(1), { region: 'eu-west-1' })).catch((caught: Fault) => caught)
      expect(fault).toBeInstanceOf(Fault)
      expect(fault).toMatchObject({
        code: 'kek_away',
        cause: { message: expect.stringMatching(/has no AWS credentials now: .*\(CredentialsProviderError\)/) },
      })
    } finally {
      Object.assign(process.env, kms.env)
    }
  })

  it('does not hold a process up for longer than its limits', async () => {
    const kek = await openKms(uriOf(), QUICK)
    kms.setTrouble('silence')
    expect(await codeOf(kek.wrap(SECRET, 'p'))).toBe('kek_away')
    const whole = await openKms(uriOf(), { wholeMs: 200 }).catch((caught: Fault) => caught)
    expect(whole).toMatchObject({ code: 'kek_away', cause: { message: 'KMS did not answer within 0.2 s' } })
  })

  it('is away where nothing listens', async () => {
    process.env['AWS_ENDPOINT_URL_KMS'] = 'http://127.0.0.1:1'
    try {
      const fault = await openKms(uriOf(keyId(1), { region: 'eu-north-1' }), QUICK).catch((caught: Fault) => caught)
      expect(fault).toBeInstanceOf(Fault)
      expect(fault).toMatchObject({ code: 'kek_away', cause: { message: expect.stringContaining('ECONNREFUSED') } })
    } finally {
      Object.assign(process.env, kms.env)
    }
  })
})
