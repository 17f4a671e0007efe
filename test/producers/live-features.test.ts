// A client sends its trace only while the list that workers sign says that all of them understand it: an older worker
// refuses a claim that it doesn't know. The test writes valid and invalid lists.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ClosedError } from '../../producers/client/errors.ts'
import { openSending } from '../../producers/client/sending.ts'
import { openTrustedKeys } from '../../producers/client/trusted-keys.ts'
import { type Client, connect } from '../../producers/client.ts'
import { listedFeatures, watchFeatures } from '../../producers/live-features.ts'
import { Fault } from '../../src/errors.ts'
import { FEATURES } from '../../src/job/envelope/features.ts'
import { keyHash, LIVE_KEYS, type LiveKeys, sealLiveKeys } from '../../src/job/envelope/live-keys.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { type FakeWorker, fakeWorker, lifecycle, makeParties, type Parties, silent } from './bundle.ts'

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01'

describeRedis('a client with a trace', () => {
  let queues: Queues
  let parties: Parties
  let client: Client
  let worker: FakeWorker

  beforeEach(async () => {
    const prefix = `{live-features-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    parties = await makeParties()
    worker = fakeWorker(queues, parties, ['token-lifecycle'])
    client = await connect({ queues, credentials: parties.credentials, replyTo: 'own', log: silent })
  })
  afterEach(async () => {
    await client.close()
    await worker.close()
    await queues.obliterate('token-lifecycle')
    await queues.close()
  })

  const publish = (over: Partial<LiveKeys>, key = parties.installation) => {
    const keys = [keyHash(parties.credentials.signingKey)]
    const list = { aud: 'tokenmill', iat: Date.now() / 1000, seq: 1, features: [...FEATURES], keys, ...over }
    return queues.setNotice('live-keys', sealLiveKeys(list, key), LIVE_KEYS.lifeMs)
  }
  async function sent(traceparent?: string): Promise<string | undefined> {
    const { status } = await client.call('token-lifecycle', lifecycle(), { traceparent, timeoutMs: 20_000 })
    expect(status).toBe('SUCCEEDED')
    return worker.seen.at(-1)?.claims.traceparent
  }

  it('sends it once all workers know it, and none of its own', async () => {
    await publish({})
    expect(await sent(TRACEPARENT)).toBe(TRACEPARENT)
    expect(await sent()).toBeUndefined()
    for await (const _ of client.bulk([{ kind: 'token-lifecycle', request: lifecycle(), traceparent: TRACEPARENT }]));
    expect(worker.seen.at(-1)?.claims.traceparent).toBe(TRACEPARENT)
  })

  it('leaves it out where there is no list, or one of an older release, and loses no job by it', async () => {
    expect(await sent(TRACEPARENT)).toBeUndefined()
    await publish({ features: [] })
    expect(await sent(TRACEPARENT)).toBeUndefined()
  })

  it('leaves it out where it is none', async () => {
    await publish({})
    for (const wrong of ['', 'abc', TRACEPARENT.toUpperCase(), `${TRACEPARENT}\n`])
      expect(await sent(wrong), wrong).toBeUndefined()
    expect(await sent(TRACEPARENT)).toBe(TRACEPARENT)
  })

  it('learns of a worker of an older release while it works', async () => {
    await publish({})
    const read = listedFeatures(queues, openTrustedKeys(parties.credentials, silent), Date.now)
    const features = watchFeatures(read, { log: silent, everyMs: 20 })
    await features.ready
    expect(features.has('traceparent')).toBe(true)
    await publish({ seq: 2, features: [] })
    await until(() => !features.has('traceparent'), { what: 'the older list' })
    await features.close()
  })

  it('asks nothing after it was closed', async () => {
    const { credentials } = parties
    const trusted = openTrustedKeys(credentials, silent)
    const deps = { queues, credentials, trusted, replyTo: 'own', resultSets: false, clock: Date.now, log: silent }
    const sending = openSending(deps, { resendMs: 60_000, unansweredMax: 1 })
    await sending.close()
    const notice = vi.spyOn(queues, 'notice')
    const late = sending.submit('token-lifecycle', lifecycle(), { traceparent: TRACEPARENT })
    await expect(late).rejects.toBeInstanceOf(ClosedError)
    expect(notice).not.toHaveBeenCalled()
    notice.mockRestore()
  })

  it('believes no list that is of another time, of another installation or not signed by it', async () => {
    const read = listedFeatures(queues, openTrustedKeys(parties.credentials, silent), Date.now)
    const now = Date.now() / 1000
    await publish({ iat: now - LIVE_KEYS.lifeMs / 1000 - 5 })
    expect(await read()).toEqual([])
    await publish({ iat: now + LIVE_KEYS.aheadMsMax / 1000 + 5 })
    expect(await read()).toEqual([])
    await publish({ aud: 'another' })
    expect(await read()).toEqual([])
    await publish({}, (await makeParties()).installation)
    expect(await read()).toEqual([])
    await publish({})
    expect(await read()).toEqual([...FEATURES])
  })
})

describe('what a sender with the store knows', () => {
  it('is what every reading has named for a while, and nothing after one that failed', async () => {
    let named: readonly string[] | undefined = [...FEATURES]
    const read = async () => {
      if (!named) throw new Fault('store_away')
      return named
    }
    const features = watchFeatures(read, { log: silent, everyMs: 5, settleMs: 300 })
    await features.ready
    const since = performance.now()
    expect(features.has('traceparent')).toBe(false)
    await until(() => features.has('traceparent'))
    expect(performance.now() - since).toBeGreaterThan(250)
    for (const wrong of [[], undefined]) {
      named = wrong
      await until(() => !features.has('traceparent'))
      named = [...FEATURES]
      await until(() => features.has('traceparent'))
    }
    await features.close()
  })
})
