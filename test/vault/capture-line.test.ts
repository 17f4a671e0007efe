// The keys of one alias: which of them decrypts, how many are tried, and the installation's statements about them.
import { createPrivateKey, generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { createMessage, encrypt, readKey } from 'openpgp'
import { beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { Fault, isRefusal } from '../../src/errors.ts'
import type { InstallationKey } from '../../src/job/answer/result.ts'
import { sealBlock } from '../../src/vault/capture/block.ts'
import { type CaptureKeyType, makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { encryptCard, readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { KEYS_MAX } from '../../src/vault/capture/keys-max.ts'
import { type Line, openBlockByLine, openCardByLine } from '../../src/vault/capture/line.ts'
import { openByLine } from '../../src/vault/capture/open-line.ts'
import {
  kidOf,
  openCaptureStatement,
  sealCaptureStatement,
  statementIn,
  withStatement,
} from '../../src/vault/capture/statement.ts'
import { importPublicJwk, makeSigningKey } from '../../src/vault/client-key.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'
import { CARD, CARD_TEXT, openHalves, openKek, type Pair, pairOf } from './bundle.ts'

const ALIAS = 'shop'
const BINDING = { iss: 'c1', jti: 'j1' }
let halves: PrivateHalves

beforeAll(async () => {
  halves = await openHalves(await openKek())
})

/** A line of so many keys, newest first. */
async function makeLine(type: CaptureKeyType, count: number): Promise<{ pairs: Pair[]; line: Line }> {
  const pairs: Pair[] = []
  for (let n = 0; n < count; n += 1) pairs.push(await pairOf(await makeCaptureKey(type, ALIAS, halves), halves))
  return { pairs, line: pairs.map(({ key }, index) => ({ keyId: `key-${index}`, key })) }
}

async function opened(text: string, line: Line): Promise<string> {
  const found = await openCardByLine(text, line)
  if (isRefusal(found)) return found.reason
  expect(found.plaintext.reveal()).toBe(CARD_TEXT)
  return found.keyId
}

describe.each(['jwe-rsa', 'jwe-ec', 'pgp'] as const)('a line of %s keys', type => {
  it('opens a card to each of its keys, and none to another', async () => {
    const { pairs, line } = await makeLine(type, 3)
    for (const [index, { to }] of pairs.entries())
      expect(await opened(await encryptCard(CARD, to), line)).toBe(`key-${index}`)
    const stranger = await pairOf(await makeCaptureKey(type, ALIAS, halves), halves)
    expect(await opened(await encryptCard(CARD, stranger.to), line)).toBe('card_undecryptable')
    expect(await opened(await encryptCard(CARD, stranger.to), [])).toBe('card_undecryptable')
  })
})

it('a card costs one private-key operation where its key is named, else as many as a line may have keys', async () => {
  const { pairs, line } = await makeLine('jwe-ec', KEYS_MAX)
  let tried = 0
  const counted = [...line, ...line].map(({ keyId, key }) => ({
    keyId,
    key: new Proxy(key, {
      get(target, name, receiver) {
        if (name === 'privateKey') tried += 1
        return Reflect.get(target, name, receiver)
      },
    }),
  }))
  const last = pairs.at(-1)
  if (!last || last.key.type === 'pgp') throw new Error('a JWE key')
  const cost = async (text: string, among: Line) => {
    tried = 0
    return [await opened(text, among), tried]
  }
  const own = counted.slice(0, KEYS_MAX)
  const named = await encryptCard(CARD, { ...last.to, kid: last.key.kid })
  expect(await cost(named, own)).toEqual([`key-${KEYS_MAX - 1}`, 1])
  expect(await cost(await encryptCard(CARD, last.to), own)).toEqual([`key-${KEYS_MAX - 1}`, KEYS_MAX])
  const stranger = await pairOf(await makeCaptureKey('jwe-ec', ALIAS, halves), halves)
  expect(await cost(await encryptCard(CARD, stranger.to), counted)).toEqual(['card_undecryptable', KEYS_MAX])
})

it('a key that the line has since is tried, and no card is refused for want of a half that cannot be opened', async () => {
  const { pairs, line } = await makeLine('jwe-ec', 2)
  const entityId = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
  const known = { entityId, line: line.slice(1), lacking: undefined }
  const [to] = pairs.map(pair => pair.to)
  if (!to) throw new Error('two keys')
  const text = await encryptCard(CARD, to)
  const open = (among: Line) => openCardByLine(text, among)
  expect(await openByLine(known, async () => ({ ...known, line }), open)).toMatchObject({ keyId: 'key-0' })
  expect(await openByLine(known, async () => known, open)).toMatchObject({ reason: 'card_undecryptable' })
  const other = { ...known, line, entityId: '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b' }
  expect(await openByLine(known, async () => other, open)).toMatchObject({ reason: 'card_undecryptable' })
  const lacking = new Fault('key_unavailable', 'no such version')
  await expect(openByLine(known, async () => ({ ...known, lacking }), open)).rejects.toBe(lacking)
})

it('a block opens by the thumbprint, by the alias, and for its own envelope alone', async () => {
  const { pairs, line } = await makeLine('jwe-rsa', 2)
  for (const [index, { to, key }] of pairs.entries()) {
    if (key.type === 'pgp') throw new Error('a JWE key')
    for (const kid of [undefined, key.kid]) {
      const block = await sealBlock('{}', kid ? { ...to, kid } : to, BINDING)
      expect(await openBlockByLine(block, line, BINDING)).toMatchObject({ keyId: `key-${index}` })
      expect(isRefusal(await openBlockByLine(block, line, { ...BINDING, jti: 'j2' }))).toBe(true)
    }
  }
})

it('an alias that is the thumbprint of a key stands for the whole line', async () => {
  const { pairs, line } = await makeLine('jwe-ec', 2)
  const [newest, former] = pairs
  if (!newest || !former || former.key.type === 'pgp') throw new Error('two JWE keys')
  const alias = former.key.kid
  const renamed = line.map(({ keyId, key }) => ({ keyId, key: { ...key, alias } }))
  expect(await opened(await encryptCard(CARD, { ...newest.to, alias }), renamed)).toBe('key-0')
})

it('an OpenPGP message with many session keys for one of our keys is refused before any is decrypted', async () => {
  const { pairs, line } = await makeLine('pgp', 1)
  const publicKey = await readKey({ armoredKey: pairs[0]?.record.publicKey ?? '' })
  const messageFor = async (count: number) => {
    const message = await createMessage({ text: CARD_TEXT })
    const armored = await encrypt({ message, encryptionKeys: Array.from({ length: count }, () => publicKey) })
    return Buffer.from(armored).toString('base64')
  }
  expect(await opened(await messageFor(4), line)).toBe('key-0')
  expect(await opened(await messageFor(5), line)).toBe('card_undecryptable')
})

describe('the statement about a key', () => {
  const signer = makeSigner()
  const stranger = makeSigner()
  const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
  const trust = { audience: 'mill', entityId: ENTITY, keys: new Map([[signer.key.kid, signer.trusted]]) }

  function makeSigner() {
    const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
    const privateKey = createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' })
    const key: InstallationKey = { kid, alg, privateKey }
    return { key, trusted: { alg, publicKey: importPublicJwk(publicJwk).key } }
  }
  const stateOf = async (
    publicKey: string,
    { by = signer, alias = ALIAS, entityId = ENTITY, audience = 'mill' } = {},
  ) =>
    sealCaptureStatement(
      { audience, key: { alias, entityId, kid: await kidOf(publicKey), until: 9_000 }, now: 1_000 },
      by.key,
    )

  it.each(['jwe-rsa', 'jwe-ec', 'pgp'] as const)(
    'travels inside a key of type %s, which nobody who asks for it reads without',
    async type => {
      const { publicKey } = await makeCaptureKey(type, ALIAS, halves)
      const statement = await stateOf(publicKey)
      const stated = withStatement(publicKey, statement)
      expect(statementIn(publicKey)).toBeUndefined()
      expect(statementIn(stated)).toBe(statement)
      expect(openCaptureStatement(statement, 'mill', trust.keys)).toEqual({
        alias: ALIAS,
        entityId: ENTITY,
        until: 9_000,
        kid: await kidOf(publicKey),
      })
      expect((await readPublicCaptureKey(ALIAS, stated, trust)).kid).toBe(await kidOf(publicKey))
      expect((await readPublicCaptureKey(ALIAS, stated)).kid).toBeUndefined()
      await expect(readPublicCaptureKey(ALIAS, publicKey, trust)).rejects.toThrow(
        'has no statement of the installation',
      )
    },
  )

  it.each(['jwe-rsa', 'pgp'] as const)('shows that a key of type %s was put in the place of another', async type => {
    const { publicKey } = await makeCaptureKey(type, ALIAS, halves)
    const other = await makeCaptureKey(type, ALIAS, halves)
    for (const statement of [
      await stateOf(other.publicKey),
      await stateOf(publicKey, { by: stranger }),
      await stateOf(publicKey, { alias: 'elsewhere' }),
      await stateOf(publicKey, { entityId: '11111111-2222-4333-8444-555555555555' }),
      await stateOf(publicKey, { audience: 'another' }),
      await stateOf(publicKey, { by: { ...stranger, key: { ...stranger.key, kid: signer.key.kid } } }),
    ])
      await expect(readPublicCaptureKey(ALIAS, withStatement(publicKey, statement), trust)).rejects.toThrow(ConfigError)
  })

  it('is no statement of another sort that the same key signed', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwk = JSON.stringify(publicKey.export({ format: 'jwk' }))
    const [head = '', ...rest] = (await stateOf(jwk)).split('.')
    const header = { ...JSON.parse(Buffer.from(head, 'base64url').toString()), typ: 'tokenmill-result+jwt' }
    const forged = [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.')
    expect(openCaptureStatement(forged, 'mill', trust.keys)).toBeUndefined()
  })
})
