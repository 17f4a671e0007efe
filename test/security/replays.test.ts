// Each message that tokenmill or a client signs, where another is expected, at another place, and at another time. One key
// signs them all here: so nothing but the message itself keeps it from being taken for another.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { signDetached, verifyDetached } from '../../producers/detached-signature.ts'
import { proveOperator, signAct } from '../../src/acts/operator.ts'
import { openLiveKeys, sealLiveKeys } from '../../src/job/answer/live-keys.ts'
import { openResult, type ResultData, sealResult } from '../../src/job/answer/result.ts'
import { openDelivery, sealResultSet } from '../../src/job/answer/result-set.ts'
import { peek, sign, verify } from '../../src/job/envelope/envelope.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import { openCaptureStatement, sealCaptureStatement } from '../../src/vault/capture/statement.ts'
import { importPublicJwk, makeSigningKey } from '../../src/vault/client-key.ts'
import { openStatement, sealStatement } from '../../src/vault/key-statement.ts'

const PLACE = 'shop-1'
const CLIENT = 'caaaaaaaaaaaaaaaaaaaaaaaaa'
const DEED = { action: 'key.rotate', subject: 'seal' }
const FILE = Buffer.from('{"rows":1}')

interface Message {
  /** The message, for this installation or client. */
  seal(place: { audience: string; client: string }): unknown
  /** Whether it is taken at the place that it is for. */
  open(message: unknown): boolean | Promise<boolean>
}

const pair = makeSigningKey()
const { kid, alg, key: publicKey } = importPublicJwk(pair.publicJwk)
const key = {
  kid,
  alg,
  privateKey: createPrivateKey({ key: pair.privateJwk.reveal() as JsonWebKey, format: 'jwk' }),
  clientId: CLIENT,
}
const keys: InstallationKeys = new Map([[kid, { alg, publicKey }]])

const body = (id: string) => JSON.stringify({ v: 1, type: 'result', result_id: id, receipt_id: randomUUID() })
const resultId = randomUUID()
const jwsOf = (message: unknown) => (typeof message === 'string' ? message : (message as ResultData).jws)
/** As the message lies on a results queue. */
const deliveryOf = (message: unknown) =>
  typeof message === 'string' ? { body: body(resultId), jws: message } : message

const MESSAGES: Record<string, Message> = {
  'a job': {
    seal: ({ audience, client }) => sign({ aud: audience, iss: client, jti: 'j' } as never, key),
    open: message => {
      const peeked = peek(jwsOf(message))
      if (typeof peeked === 'string' || !verify(jwsOf(message), { alg, publicKey })) return false
      return peeked.payload['aud'] === PLACE && peeked.iss === CLIENT
    },
  },
  'a result': {
    seal: ({ client }) => sealResult(body(resultId), { clientId: client, resultId, revision: 1 }, key),
    open: message => openResult(deliveryOf(message), CLIENT, keys).refused === undefined,
  },
  'a set of results': {
    seal: ({ client }) => sealResultSet([body(resultId), body(randomUUID())], client, key),
    open: message => {
      const opened = openDelivery(deliveryOf(message), CLIENT, keys)
      return opened.refused === undefined && opened.results.length > 1
    },
  },
  'the list of live keys': {
    seal: ({ audience }) => sealLiveKeys({ aud: audience, iat: 1, seq: 1, features: [] }, key),
    open: message => openLiveKeys(jwsOf(message), PLACE, keys) !== undefined,
  },
  'an announced key': {
    seal: ({ audience }) =>
      sealStatement({ audience, publicJwk: makeSigningKey().publicJwk, from: 2_000, now: 1_000 }, key),
    open: message => openStatement(jwsOf(message), PLACE, keys) !== undefined,
  },
  'a stated capture key': {
    seal: ({ audience }) =>
      sealCaptureStatement(
        { audience, key: { alias: 'a', entityId: randomUUID(), kid: 'k', until: 9_000 }, now: 1_000 },
        key,
      ),
    open: message => openCaptureStatement(jwsOf(message), PLACE, keys) !== undefined,
  },
  "an operator's act": {
    seal: ({ audience, client }) =>
      signAct({ ...DEED, reason: undefined, audience }, { ...key, clientId: client }, 1_000),
    open: async message => isRightAct(jwsOf(message)),
  },
  'a manifest': {
    seal: () => signDetached(FILE, key),
    open: message => {
      const [head = '', , signature = ''] = jwsOf(message).split('.')
      return verifyDetached(FILE, `${head}..${signature}`, [{ kid, alg, publicKey }])
    },
  },
}

/** Whether the store is asked for the act's client: before that, form and act are judged. */
async function isRightAct(jws: string): Promise<boolean> {
  let isAsked = false
  const db = {
    query: () => {
      isAsked = true
      return Promise.reject(new Error('asked'))
    },
  }
  await proveOperator(db as never, jws, DEED, 1_000).catch(() => {})
  return isAsked
}

const HERE = { audience: PLACE, client: CLIENT }
const NAMES = Object.keys(MESSAGES)

describe.each(NAMES)('%s', name => {
  const { open } = MESSAGES[name] as Message
  let own: unknown
  beforeAll(() => {
    own = MESSAGES[name]?.seal(HERE)
  })

  it('is taken where it belongs', async () => {
    expect(await open(own)).toBe(true)
  })

  it.each(NAMES.filter(other => other !== name))('is not taken for it: %s', async other => {
    expect(await open(MESSAGES[other]?.seal(HERE))).toBe(false)
  })
})

describe('a message of another place', () => {
  const elsewhere = { audience: 'shop-2', client: CLIENT }
  it.each(['a job', 'the list of live keys', 'an announced key', 'a stated capture key'])(
    'is not taken here: %s',
    async name => {
      expect(await MESSAGES[name]?.open(MESSAGES[name]?.seal(elsewhere))).toBe(false)
    },
  )

  it.each(['a job', 'a result', 'a set of results'])('is not taken by another client: %s', async name => {
    expect(
      await MESSAGES[name]?.open(MESSAGES[name]?.seal({ audience: PLACE, client: 'cbbbbbbbbbbbbbbbbbbbbbbbbb' })),
    ).toBe(false)
  })

  it('is not taken for another act, or another file', async () => {
    const other = signAct({ ...DEED, subject: 'grant', reason: undefined, audience: PLACE }, key, 1_000)
    expect(await isRightAct(other)).toBe(false)
    expect(verifyDetached(Buffer.from('{"rows":2}'), signDetached(FILE, key), [{ kid, alg, publicKey }])).toBe(false)
  })
})
