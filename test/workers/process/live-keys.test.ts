// The list of live keys and features that workers publish: by real worker processes, and by which of several processes.

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keyHash, LIVE_KEYS, type LiveKeys, openLiveKeys } from '../../../src/job/answer/live-keys.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { commonFeatures, FEATURES, SPEAKING } from '../../../src/job/envelope/features.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as liveKeys from '../../../src/store/access/live-keys.ts'
import * as liveList from '../../../src/store/access/live-list.ts'
import * as processes from '../../../src/store/access/processes.ts'
import type { Store } from '../../../src/store/pool.ts'
import { describeEngines, describeStore, redisUrl } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

describeEngines('worker processes', engine => {
  let installation: Installation
  let redis: Redis | undefined
  beforeAll(async () => {
    installation = await openInstallation(engine)
    if (engine.redisUrls) redis = new Redis(redisUrl() ?? '')
  })
  afterAll(async () => {
    redis?.disconnect()
    await installation?.close()
  })

  async function list(): Promise<LiveKeys | undefined> {
    const { text } = await installation.queues.notice('live-keys')
    const { audience, installationKeys } = installation.credentials
    return text === undefined ? undefined : openLiveKeys(text, audience, installationKeys)
  }

  it('sign a list of live keys where senders may read it, anew on a change and while nothing changes', async () => {
    const workers = await installation.startWorkers()
    const { store } = installation.vault
    await until(async () => (await processes.listWorkers(store, 60_000)).length === 2)
    if (engine.name === 'postgres') {
      expect(await installation.queues.notice('live-keys')).toEqual({ text: undefined, permitted: true })
    } else {
      const { signingKey } = installation.credentials
      const first = await until(list, { what: 'a list' })
      expect(first.keys).toContain(keyHash(signingKey))
      // The installation's client, and the four system clients.
      expect(first.keys).toHaveLength(5)
      expect(first.features).toEqual(FEATURES)
      expect(await redis?.pttl(`${engine.prefix}:live-keys`)).toBeGreaterThan(LIVE_KEYS.lifeMs / 4)
      const later = await until(
        async () => (await list().then(found => found && found.seq > first.seq && found)) || undefined,
        {
          what: 'a list without a change',
        },
      )
      expect(later.iat).toBeGreaterThan(first.iat)
      const second = await installation.addClient('second')
      const named = async () => (await list())?.keys?.includes(keyHash(second.credentials.signingKey))
      await until(named, { what: 'the new key' })
      await clients.revoke(store, second.credentials.signingKey.clientId)
      await until(async () => !(await named()), { what: 'a list without the revoked client' })
    }
    // A process announces its features only once it listens.
    const alone = (await processes.listWorkers(store, 60_000)).flatMap(({ kinds }) => kinds)
    const heard = await installation.queues.workersOfAll(alone)
    for (const kind of alone) expect(heard?.get(kind), kind).toBe(1)
    await workers.close()
    expect(await processes.listWorkers(store, 60_000)).toEqual([])
  })
})

describeStore('a turn to tell the list', engine => {
  let installation: Installation
  let store: Store
  beforeAll(async () => {
    installation = await openInstallation(engine)
    store = installation.vault.store
  })
  afterAll(() => installation?.close())

  it('goes to one of many, with a sequence that only grows, and at once on a change', async () => {
    const first = await liveList.takeTurn(store, 0)
    const turns = await Promise.all(Array.from({ length: 8 }, () => liveList.takeTurn(store, 60_000)))
    expect(turns.filter(turn => turn !== undefined)).toEqual([])
    const { signingKey } = installation.credentials
    await clients.retireKey(store, signingKey.clientId, signingKey.kid, Date.now() + 3_600_000)
    const changed = await Promise.all(Array.from({ length: 8 }, () => liveList.takeTurn(store, 60_000)))
    expect(changed.filter(turn => turn !== undefined)).toEqual([{ seq: (first?.seq ?? 0) + 1, at: expect.any(Number) }])
    expect(await liveList.takeTurn(store, 0)).toMatchObject({ seq: (first?.seq ?? 0) + 2 })
  })

  it('counts a worker that was killed until it was silent for long enough', async () => {
    const processId = randomUUID()
    const known = { processId, role: 'bulk', host: 'a', version: '1.0.0', connections: 1 } as const
    const said = { kinds: ['report'], features: ['trace'], keys: [] }
    await processes.see(store, { ...known, ...said })
    expect(await processes.listWorkers(store, 60_000)).toMatchObject([
      { kinds: said.kinds, features: said.features, silentMs: expect.any(Number) },
    ])
    expect(await processes.listWorkers(store, 0)).toEqual([])
    expect(await processes.removeSilent(store, 60_000)).toBe(0)
    expect(await processes.removeSilent(store, 0)).toBe(1)
    expect(await processes.list(store)).toEqual([])
  })

  it('counts a key as live as workers do: retired until its end, revoked or of a revoked client never', async () => {
    const { credentials } = await installation.addClient('judged')
    const { clientId, kid } = credentials.signingKey
    const isListed = async (id: string) => {
      const listed = await liveKeys.listLiveClients(store, { after: '', limit: 100 })
      const own = listed.filter(client => client.clientId === id).map(client => client.clientId)
      return (await liveKeys.listLiveKeys(store, own)).length > 0
    }
    const isLive = async () => {
      const listed = await isListed(clientId)
      expect(await liveKeys.isLive(store, { clientId, kid })).toBe(listed)
      return listed
    }
    expect(await isLive()).toBe(true)
    await clients.retireKey(store, clientId, kid, Date.now() + 3_600_000)
    expect(await isLive()).toBe(true)
    await clients.retireKey(store, clientId, kid, Date.now() - 1)
    expect(await isLive()).toBe(false)
    await clients.retireKey(store, clientId, kid, Date.now() + 3_600_000)
    await clients.revoke(store, clientId)
    expect(await isLive()).toBe(false)
    expect(await liveKeys.isLive(store, { clientId: 'c0', kid })).toBe(false)
  })
})

describe('the features that all live workers have', () => {
  const worker = (features: string[], { kinds = ['token-create'], silentMs = 0 } = {}) => ({
    features,
    kinds,
    silentMs,
  })
  const listening = (told: Record<string, number> | undefined) => ({
    workersOfAll: async (queues: readonly string[]) => told && new Map(queues.map(queue => [queue, told[queue] ?? 0])),
  })

  it('are those that each of them says, however many releases there are', async () => {
    const workers = [worker(['extent', 'trace']), worker(['trace']), worker(['trace', 'columns'])]
    expect(await commonFeatures(listening({ 'token-create': 3 }), workers, CATALOGUE.kinds)).toEqual(['trace'])
    expect(await commonFeatures(listening({ 'token-create': 4 }), [...workers, worker([])], CATALOGUE.kinds)).toEqual(
      [],
    )
    expect(await commonFeatures(listening({}), [], CATALOGUE.kinds)).toEqual([])
  })

  it('are none while a worker listens that says nothing of itself, or where that can not be seen', async () => {
    const one = [worker(['trace'])]
    expect(await commonFeatures(listening({ 'token-create': 2 }), one, CATALOGUE.kinds)).toEqual([])
    expect(await commonFeatures(listening(undefined), one, CATALOGUE.kinds)).toEqual([])
    expect(await commonFeatures(listening({ 'token-create': 1 }), one, CATALOGUE.kinds)).toEqual(['trace'])
    // Only one worker has announced itself, but two listen.
    expect(await commonFeatures(listening({ 'token-create': 1, 'token-batch': 1 }), one, CATALOGUE.kinds)).toEqual([])
  })

  it('are none while somebody says them who may not listen: that could hide an older worker', async () => {
    const two = [worker(['trace']), worker(['trace'])]
    expect(await commonFeatures(listening({ 'token-create': 1 }), two, CATALOGUE.kinds)).toEqual([])
    const dead = worker(['trace'], { silentMs: SPEAKING.freshMs + 1 })
    expect(await commonFeatures(listening({ 'token-create': 2 }), [worker(['trace']), dead], CATALOGUE.kinds)).toEqual(
      [],
    )
    expect(await commonFeatures(listening({ 'token-create': 1 }), [worker(['trace']), dead], CATALOGUE.kinds)).toEqual(
      [],
    )
  })
})
