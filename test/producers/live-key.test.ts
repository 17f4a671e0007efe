// A sender finds out from a signed list that its key isn't live. Any other list, or none, leaves it in doubt. The test
// writes valid and invalid lists.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Client, connect, KeyNotLiveError } from '../../producers/client.ts'
import { watchKey } from '../../producers/live-key.ts'
import {
  keyHash,
  LIVE_KEYS,
  LIVE_KEYS_TYP,
  type LiveKeys,
  makeLiveKeys,
  rightsHash,
  sealLiveKeys,
} from '../../src/job/answer/live-keys.ts'
import { signText } from '../../src/job/envelope/envelope.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { answerWhenSent, lifecycle, makeParties, type Parties, silent } from './bundle.ts'

const LOOK_MS = 40
const OTHERS = [keyHash({ clientId: 'somebody', kid: 'else' })]

describeRedis('a sender', () => {
  let prefix: string
  let queues: Queues
  let parties: Parties
  let client: Client | undefined
  let looks: number
  let told: string[]
  /** The time before any sender began. */
  let before: number

  beforeEach(async () => {
    prefix = `{live-key-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    parties = await makeParties()
    looks = 0
    told = []
    before = Date.now() / 1000 - 1
  })
  afterEach(async () => {
    await client?.close()
    client = undefined
    await queues.obliterate('token-lifecycle')
    await queues.close()
  })

  const listOf = (over: Partial<LiveKeys> = {}): LiveKeys => ({
    aud: 'tokenmill',
    iat: Date.now() / 1000,
    seq: 1,
    features: [],
    keys: OTHERS,
    ...over,
  })
  const publish = (text: string) => queues.setNotice('live-keys', text, LIVE_KEYS.lifeMs)
  const seal = (over: Partial<LiveKeys> = {}) => sealLiveKeys(listOf(over), parties.installation)

  /** Makes a call, and counts its readings of the list. `ended`: how the call has ended; undefined before that. */
  async function call(url?: string): Promise<{ ended: () => unknown; call: Promise<unknown> }> {
    const own = url === undefined ? queues : await openRedis([url], { prefix, lockMs: 30_000, log: silent })
    const counted: Queues = {
      ...own,
      async notice(name) {
        const found = await own.notice(name)
        looks += 1
        return found
      },
    }
    client = await connect({
      queues: counted,
      credentials: parties.credentials,
      replyTo: 'own',
      log: silent,
      keyCheckMs: LOOK_MS,
      tell: line => told.push(line),
    })
    let end: unknown
    const calling = client.call('token-lifecycle', lifecycle(), { jti: 'a' })
    calling.then(
      result => {
        end = result
      },
      error => {
        end = error
      },
    )
    if (own !== queues) calling.finally(() => own.close()).catch(() => {})
    return { ended: () => end, call: calling }
  }
  function sendAll(n: number): Promise<void> {
    const items = Array.from({ length: n }, (_, i) => ({
      kind: 'token-lifecycle' as const,
      request: lifecycle(),
      jti: `${n}-${i}`,
    }))
    const sending = (async () => {
      for await (const _ of client?.bulk(items, { inFlight: 4 }) ?? []) expect.unreachable()
    })()
    sending.catch(() => {})
    return sending
  }
  const looksMore = (n: number) => {
    const enough = looks + n
    return until(() => looks >= enough, { what: 'further looks' })
  }

  it('ends when two lists, both signed after it began, lack its key', async () => {
    await publish(seal({ seq: 7 }))
    const { call: calling, ended } = await call()
    await looksMore(3)
    await publish(seal({ seq: 8 }))
    await looksMore(3)
    expect(ended()).toBeUndefined()
    await publish(seal({ seq: 9 }))
    await expect(calling).rejects.toThrow(KeyNotLiveError)
    await expect(calling).rejects.toThrow(parties.credentials.signingKey.clientId)
    expect(told).toEqual([])
  })

  it('ends when the installation speaks another version of the contract', async () => {
    const { call: calling } = await call()
    await publish(seal({ seq: 1, contract: 2 }))
    await expect(calling).rejects.toThrow('the installation speaks version 2 of the contract and this client version 1')
  })

  it('ends a bulk, be its every place taken or one, and the next call finds out anew', async () => {
    const { call: calling } = await call()
    await looksMore(2)
    const bulks = [1, 40].map(n => sendAll(n))
    await looksMore(2)
    await publish(seal({ seq: 1 }))
    await looksMore(2)
    await publish(seal({ seq: 2 }))
    await expect(calling).rejects.toThrow(KeyNotLiveError)
    for (const bulk of bulks) await expect(bulk).rejects.toThrow(KeyNotLiveError)
    const next = client?.call('token-lifecycle', lifecycle(), { jti: 'b' })
    await looksMore(2)
    const { signingKey } = parties.credentials
    await publish(seal({ seq: 3, keys: [keyHash(signingKey)] }))
    await answerWhenSent(queues, parties, { jti: 'b', kind: 'token-lifecycle', reply_to: 'own' })
    expect(await next).toMatchObject({ jti: 'b', status: 'SUCCEEDED' })
  })

  it.each([
    ['that name its key', (seq: number) => seal({ seq, keys: [keyHash(parties.credentials.signingKey)] }), undefined],
    ['that were signed before it began', (seq: number) => seal({ seq, iat: before }), undefined],
    ['that name no keys, for there are too many', (seq: number) => seal({ seq, keys: undefined }), undefined],
    ['that lie there signed once', () => seal({ seq: 3 }), undefined],
    ['that are over', (seq: number) => seal({ seq, iat: Date.now() / 1000 - 21 }), /not of now/],
    ['of another installation', (seq: number) => seal({ seq, aud: 'another' }), /not signed/],
    ['of another key', (seq: number) => sealLiveKeys(listOf({ seq }), forger(parties.installation.kid)), /not signed/],
    [
      'signed as something else',
      (seq: number) => signText(JSON.stringify(listOf({ seq })), parties.installation, 'tokenmill-result+jwt'),
      /not signed/,
    ],
    ['that are none', () => 'nonsense', /not signed/],
    ['of a sequence that goes back', (seq: number) => seal({ seq: 100 - seq }), /older than one seen/],
  ])('waits on while it finds lists %s', async (_, make, line) => {
    await publish(make(1))
    const { ended } = await call()
    await looksMore(1)
    for (let seq = 2; seq <= 5; seq += 1) {
      await publish(make(seq))
      await looksMore(2)
    }
    expect(ended()).toBeUndefined()
    expect(told).toEqual(line === undefined ? [] : [expect.stringMatching(line)])
  })

  it('waits on where there is no list, and says so once', async () => {
    const { ended } = await call()
    await looksMore(6)
    expect(ended()).toBeUndefined()
    expect(told).toEqual([expect.stringContaining('no worker says which keys are live')])
    await answerWhenSent(queues, parties, { jti: 'a', kind: 'token-lifecycle', reply_to: 'own' })
    await until(ended)
    expect(ended()).toMatchObject({ status: 'SUCCEEDED' })
  })

  it('waits on where its Redis user may not read the list, and says so once', async () => {
    const admin = new Redis(redisUrl() ?? '')
    const user = `waits-${randomBytes(4).toString('hex')}`
    await admin.call('ACL', 'SETUSER', user, 'on', '>secret', `~${prefix}:token-*`, `~${prefix}:results-*`, '+@all')
    try {
      for (const seq of [1, 2]) await publish(seal({ seq }))
      const { ended } = await call((redisUrl() ?? '').replace('//', `//${user}:secret@`))
      await looksMore(6)
      expect(ended()).toBeUndefined()
      expect(told).toEqual([expect.stringContaining('may not read which keys are live')])
      await client?.close()
      await until(ended)
    } finally {
      await admin.call('ACL', 'DELUSER', user)
      admin.disconnect()
    }
  })
})

it('a sender looks once, and again only while something is unanswered', async () => {
  const looks = { idle: 0, waiting: 0 }
  const watch = (name: keyof typeof looks) =>
    watchKey(
      () => async () => {
        looks[name] += 1
        return { is: 'live' }
      },
      { isWaiting: () => name === 'waiting', onGone: () => {}, onForeign: () => {}, tell: () => {}, everyMs: 10 },
    )
  const watches = [watch('idle'), watch('waiting')]
  for (const { start } of watches) start()
  await until(() => looks.waiting >= 5)
  for (const { stop } of watches) stop()
  expect(looks.idle).toBe(1)
})

describe('a list of live keys', () => {
  const head = { aud: 'tokenmill', iat: 1, seq: 1, features: ['extent'] }
  const many = (n: number) => ({
    keys: Array.from({ length: n }, (_, i) => ({ clientId: `c${i}`, kid: 'k' })),
    rights: Array.from({ length: 2 * n }, (_, i) => rightsHash(`${i}`)),
  })

  it('names at most 10,000 keys, and beyond that none, but still the features', () => {
    expect(makeLiveKeys(head, many(10_000)).keys).toHaveLength(10_000)
    expect(makeLiveKeys(head, many(10_001))).toEqual(head)
    expect(makeLiveKeys(head, { ...many(10_001), keys: [] })).toEqual(head)
  })

  it('fits what a reader takes, and tells neither client nor kid', () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    const jws = sealLiveKeys(makeLiveKeys(head, many(10_000)), { kid: 'k', alg: 'EdDSA', privateKey })
    expect(jws.length).toBeLessThan(LIVE_KEYS.jwsCharsMax * 0.9)
    expect(keyHash({ clientId: 'c1', kid: 'k' })).toMatch(/^[A-Za-z0-9_-]{12}$/)
    expect(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).toContain(LIVE_KEYS_TYP)
  })
})

function forger(kid: string) {
  return { kid, alg: 'EdDSA' as const, privateKey: generateKeyPairSync('ed25519').privateKey }
}
