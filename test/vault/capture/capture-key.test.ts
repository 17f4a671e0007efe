import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { inspect } from 'node:util'
import { generateKey } from 'openpgp'
import { beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import { Secret } from '../../../src/secret.ts'
import {
  CAPTURE_KEY_TYPES,
  type CaptureKeyRecord,
  importCaptureKey,
  makeCaptureKey,
  openCaptureKey,
} from '../../../src/vault/capture/capture-key.ts'
import { encryptCard, readPublicCaptureKey } from '../../../src/vault/capture/encrypt.ts'
import { openCard } from '../../../src/vault/capture/open-card.ts'
import type { PrivateHalves } from '../../../src/vault/private-half.ts'
import { CARD, CARD_TEXT, openHalves, openKek, pairOf, revealed } from '../bundle.ts'
import { OLD_KEY } from '../old-client.ts'

let halves: PrivateHalves
let records: CaptureKeyRecord[]
beforeAll(async () => {
  halves = await openHalves(await openKek())
  records = await Promise.all(CAPTURE_KEY_TYPES.map(type => makeCaptureKey(type, `made-${type}`, halves)))
})

const pem = (key: { export(options: { format: 'pem'; type: 'pkcs8' }): string | Buffer }) =>
  new Secret(String(key.export({ format: 'pem', type: 'pkcs8' })))
const roundTrip = async (record: CaptureKeyRecord) => {
  const { key, to } = await pairOf(record, halves)
  return revealed(await openCard(await encryptCard(CARD, to), key))
}

describe('a capture key', () => {
  it('of every type opens what its public half seals', async () => {
    for (const record of records) expect(await roundTrip(record)).toBe(CARD_TEXT)
  })

  it('has a public half that names the alias and holds nothing private', () => {
    const [rsa, ec, pgp] = records.map(record => record.publicKey)
    expect(JSON.parse(rsa ?? '')).toEqual({
      kty: 'RSA',
      n: expect.any(String),
      e: 'AQAB',
      kid: 'made-jwe-rsa',
      alg: 'RSA-OAEP-256',
      use: 'enc',
    })
    expect(JSON.parse(ec ?? '')).toEqual({
      kty: 'EC',
      crv: 'P-256',
      x: expect.any(String),
      y: expect.any(String),
      kid: 'made-jwe-ec',
      alg: 'ECDH-ES',
      use: 'enc',
    })
    expect(pgp).toMatch(/^-----BEGIN PGP PUBLIC KEY BLOCK-----/)
  })

  it('opens under its own alias and type only, and with its own key-encryption key only', async () => {
    const unavailable = expect.objectContaining({ code: 'key_unavailable' })
    const other = await openHalves(await openKek())
    for (const record of records) {
      await expect(openCaptureKey({ ...record, alias: 'another' }, halves)).rejects.toEqual(unavailable)
      await expect(openCaptureKey(record, other)).rejects.toEqual(unavailable)
      for (const type of CAPTURE_KEY_TYPES.filter(each => each !== record.type)) {
        await expect(openCaptureKey({ ...record, type }, halves)).rejects.toEqual(unavailable)
      }
    }
  })
})

describe('an imported capture key', () => {
  it.each([
    ['jwe-rsa', () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
    ['jwe-ec', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey],
    ['jwe-ec', () => generateKeyPairSync('x25519').privateKey],
  ] as const)('of type %s is taken as PEM, as encrypted PEM and as JWK', async (type, make) => {
    const key = make()
    const locked = key.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'open sesame' })
    const imported = await Promise.all([
      importCaptureKey(pem(key), 'imported', undefined, halves),
      importCaptureKey(new Secret(String(locked)), 'imported', type, halves, new Secret('open sesame')),
      importCaptureKey(new Secret(JSON.stringify(key.export({ format: 'jwk' }))), 'imported', type, halves),
    ])
    for (const record of imported) {
      expect(record.type).toBe(type)
      expect(await roundTrip(record)).toBe(CARD_TEXT)
    }
  })

  it('is taken as an OpenPGP key, locked or not', async () => {
    for (const passphrase of [undefined, 'open sesame']) {
      const { privateKey } = await generateKey({
        userIDs: [{ name: 'x' }],
        format: 'armored',
        ...(passphrase ? { passphrase } : {}),
      })
      const record = await importCaptureKey(
        new Secret(privateKey),
        'imported',
        undefined,
        halves,
        passphrase ? new Secret(passphrase) : undefined,
      )
      expect(record.type).toBe('pgp')
      expect(await roundTrip(record)).toBe(CARD_TEXT)
    }
  })

  it('is refused when it is weak, of another kind or another type than asked for', async () => {
    const wrong = [
      generateKeyPairSync('rsa', { modulusLength: 1024 }),
      generateKeyPairSync('ec', { namedCurve: 'P-384' }),
      generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
      generateKeyPairSync('ed25519'),
      generateKeyPairSync('rsa-pss', { modulusLength: 2048 }),
    ]
    for (const { privateKey } of wrong) await expectRefused(pem(privateKey))
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await expect(importCaptureKey(pem(ec.privateKey), 'imported', 'jwe-rsa', halves)).rejects.toThrow(
      /of type jwe-ec, not jwe-rsa/,
    )
    await expect(importCaptureKey(new Secret(OLD_KEY), 'imported', 'jwe-ec', halves)).rejects.toThrow(ConfigError)
  })

  it('is refused when it is no private key, and what was given is not repeated', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await expectRefused(new Secret(''))
    await expectRefused(new Secret('{"kty":"EC","d":"a-secret-in-it"'))
    await expectRefused(new Secret('-----BEGIN PRIVATE KEY-----\na-secret-in-it\n-----END PRIVATE KEY-----'))
    await expectRefused(new Secret(String(publicKey.export({ format: 'pem', type: 'spki' }))))
    await expectRefused(new Secret(JSON.stringify(publicKey.export({ format: 'jwk' }))))
    await expectRefused(
      new Secret('-----BEGIN PGP PRIVATE KEY BLOCK-----\n\na-secret-in-it\n-----END PGP PRIVATE KEY BLOCK-----'),
    )
    await expectRefused(new Secret(records.find(record => record.type === 'pgp')?.publicKey ?? ''))
  })

  it('is refused with a wrong passphrase, or with none where one is needed', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const locked = String(
      privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'right' }),
    )
    const openpgp = await generateKey({ userIDs: [{ name: 'x' }], format: 'armored', passphrase: 'right' })
    for (const text of [locked, openpgp.privateKey]) {
      await expectRefused(new Secret(text))
      await expectRefused(new Secret(text), new Secret('wrong'))
    }
  })

  it('is refused when its halves do not belong together', async () => {
    const [one, two] = [0, 1].map(() =>
      generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
    )
    await expectRefused(new Secret(JSON.stringify({ ...one, n: two?.n })))
    await expectRefused(
      new Secret(JSON.stringify({ ...one, d: two?.d, p: two?.p, q: two?.q, dp: two?.dp, dq: two?.dq, qi: two?.qi })),
    )
  })

  async function expectRefused(text: Secret, passphrase?: Secret): Promise<void> {
    const error = await importCaptureKey(text, 'imported', undefined, halves, passphrase).catch(caught => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(inspect(error, { depth: 9 })).not.toContain('a-secret-in-it')
  }
})

describe('a public capture key', () => {
  it('is refused with its private half, under another alias, or when it is weak or no key', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
    const { privateKey: armored } = await generateKey({ userIDs: [{ name: 'x' }], format: 'armored' })
    const [rsa] = records
    const texts = [
      JSON.stringify(privateKey.export({ format: 'jwk' })),
      JSON.stringify(weak),
      JSON.stringify({ kty: 'oct', k: 'AAAA' }),
      armored,
      '',
      '{',
      '[]',
      'null',
      rsa?.publicKey ?? '',
    ]
    for (const text of texts) await expect(readPublicCaptureKey('alias', text)).rejects.toThrow(ConfigError)
  })

  it('is read without a kid, as others write it', async () => {
    const { publicKey } = generateKeyPairSync('x25519')
    const read = await readPublicCaptureKey(
      'alias',
      JSON.stringify(createPublicKey(publicKey.export({ format: 'pem', type: 'spki' })).export({ format: 'jwk' })),
    )
    expect(read).toMatchObject({ alias: 'alias', type: 'jwe-ec' })
  })

  it('on secp256k1 is for what old clients sent: nothing new is encrypted to it', async () => {
    const { publicKey } = await importCaptureKey(new Secret(OLD_KEY), 'old', 'pgp', halves)
    await expect(readPublicCaptureKey('old', publicKey)).rejects.toThrow(ConfigError)
  })
})
