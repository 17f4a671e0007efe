// Webhooks with real workers, a real scheduler, and receivers that fail in many ways. The delays are seconds instead of
// days.
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { addEndpoint, enableEndpoint, redeliver, removeEndpoint, rotateSecret } from '../../../src/acts/events.ts'
import type { EventType } from '../../../src/job/event.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import type * as events from '../../../src/store/event/events.ts'
import { tell } from '../../../src/store/event/tell.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { type OpenedSchedule, openScheduleFor } from '../../producers/schedule/bundle.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { volume } from '../../support/volume.ts'
import { LEASE_MS } from './quick.ts'
import { hostile, openReceiver, type Receiver } from './receiver.ts'

const SCRIPT = fileURLToPath(new URL('worker.ts', import.meta.url))
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
/** A wide limit for a busy machine; an idle one needs a tenth of it. */
const BOUND_MS = 200_000
/** Events, each for five endpoints. Fewer suffice on PostgreSQL, where the queue can't be lost without the store. */
const EVENTS = { redis: volume(40, 200), postgres: volume(20, 40) } as const
let next = 0

describeEngines('webhooks', engine => {
  let installation: Installation
  let schedule: OpenedSchedule
  let receiver: Receiver
  let clientId: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    clientId = installation.credentials.signingKey.clientId
    receiver = await openReceiver()
    await installation.startWorkers({ script: SCRIPT, roles: ['interactive'], processes: 1 })
    schedule = await openScheduleFor(installation, { settings: { webhookLeaseMs: LEASE_MS } })
  })
  afterAll(async () => {
    await schedule?.close()
    await installation?.close()
    await receiver?.close()
  })

  interface Subscribed {
    endpointId: string
    path: string
  }

  /** Subscribes to a new path, and sets its secret in the receiver. */
  async function subscribe({
    isPrivate = true,
    type = 'batch.finished',
    host = '127.0.0.1',
  }: {
    isPrivate?: boolean
    type?: EventType
    host?: string
  } = {}): Promise<Subscribed> {
    next += 1
    const path = `/${next}`
    const endpointId = crypto.randomUUID()
    const secret = makeWebhookSecret()
    receiver.trust(path, secret.reveal())
    const url = `${isPrivate ? 'http' : 'https'}://${host}:${receiver.port}${path}`
    const sealed = installation.vault.ring.sealWebhookSecret(secret, endpointId)
    const verdict = await addEndpoint(
      installation.vault.store,
      { endpointId, clientId, url, events: [type], isPrivate, secret: sealed },
      BY,
    )
    expect(verdict).toHaveProperty('done')
    return { endpointId, path }
  }
  async function happen(subject: string, type: EventType = 'batch.finished', revision = 1): Promise<void> {
    const event: events.Event = { type, clientId, subject, revision, data: { batch_id: subject, revision } }
    await installation.vault.store.transaction(db => tell(db, event))
  }
  const deliveriesTo = ({ endpointId }: Subscribed) =>
    deliveries.list(installation.vault.store, { endpointId, limit: 1_000 })
  const takenAt = ({ path }: Subscribed) => receiver.taken.filter(one => one.path === path)
  const untilAll = (to: Subscribed, state: deliveries.DeliveryState, n = 1) =>
    until(async () => (await deliveriesTo(to)).filter(one => one.state === state).length === n, {
      ms: BOUND_MS,
    })
  const end = async ({ endpointId }: Subscribed) => {
    await removeEndpoint(installation.vault.store, endpointId, BY)
  }

  it('are signed so that the published library verifies them, and hold type, time and names', async () => {
    const to = await subscribe({ type: 'scheme-token.updated' })
    await happen('one', 'scheme-token.updated', 7)
    await untilAll(to, 'DELIVERED')
    const [{ id, body, headers } = expect.fail('nothing came'), ...others] = takenAt(to)
    expect(others).toEqual([])
    expect(body).toEqual({
      type: 'scheme_token.updated',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { batch_id: 'one', revision: 7 },
    })
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': id })
    expect(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(60)
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/)
    await end(to)
  })

  it('come by hundreds to receivers that fail, hang and lie: each is told, and nobody at a private address', async () => {
    const told = await Promise.all(Array.from({ length: 5 }, () => subscribe()))
    // The name leads to the receiver's private address, which only `--private` permits.
    const forbidden = [await subscribe({ isPrivate: false, host: 'localhost', type: 'batch.stalled' })]
    for (const { path } of [...told, ...forbidden]) receiver.behave(path, hostile)
    const before = receiver.taken.length
    const many = EVENTS[engine.name]
    for (let n = 0; n < many; n += 1) await happen(`many-${n}`)
    for (let n = 0; n < 20; n += 1) await happen(`forbidden-${n}`, 'batch.stalled')
    const tries = () => receiver.taken.slice(before)
    const startedAt = Date.now()
    if (engine.redisUrls) {
      await until(() => tries().length > many, { ms: BOUND_MS })
      await flush(engine.redisUrls[0] ?? '', engine.prefix)
    }
    for (const to of told) await untilAll(to, 'DELIVERED', many)
    const ms = Date.now() - startedAt
    if (process.env['TEST_LOG']) process.stdout.write(`${5 * many} webhooks in ${ms} ms, ${tries().length} tries\n`)
    expect(ms).toBeLessThan(BOUND_MS)
    expect(receiver.forged).toBe(0)
    for (const to of told) {
      expect(new Set(takenAt(to).map(({ body }) => body.data['batch_id'])).size).toBe(many)
      expect(takenAt(to).every(({ id }) => receiver.told.has(id))).toBe(true)
      expect(receiver.atOnce.get(to.path)).toBeLessThanOrEqual(endpoints.AT_ONCE_MAX)
    }
    for (const to of forbidden) {
      const all = await deliveriesTo(to)
      expect(takenAt(to)).toEqual([])
      expect(all.filter(one => one.state === 'DELIVERED')).toEqual([])
      expect(new Set(all.flatMap(({ reason }) => reason ?? []))).toEqual(new Set(['forbidden']))
    }
    for (const to of [...told, ...forbidden]) await end(to)
  }, 240_000)

  it('are told at least once where a worker dies between the request and its record', async () => {
    const to = await subscribe()
    receiver.behave(to.path, ({ times }, response) => {
      // The worker is killed before it gets the answer.
      if (times === 1) kill9(childrenRunning(SCRIPT))
      response.writeHead(204).end()
    })
    await happen('crash')
    await untilAll(to, 'DELIVERED')
    expect(takenAt(to).length).toBeGreaterThanOrEqual(2)
    expect(new Set(takenAt(to).map(({ id }) => id)).size).toBe(1)
    await end(to)
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('have one id at each try, and the schedule ends: the last one fails for good', async () => {
    const to = await subscribe()
    receiver.behave(to.path, (_, response) => response.writeHead(500).end())
    await happen('never')
    await untilAll(to, 'FAILED')
    const tries = takenAt(to)
    expect(tries).toHaveLength(10)
    expect(new Set(tries.map(({ id }) => id)).size).toBe(1)
    const [delivery = expect.fail('it is kept')] = await deliveriesTo(to)
    expect(delivery).toMatchObject({ attempt: 10, status: 500, reason: 'status', deliveryId: tries[0]?.id })

    receiver.behave(to.path, (_, response) => response.writeHead(200).end())
    expect(await redeliver(installation.vault.store, delivery.deliveryId, BY)).toHaveProperty('done')
    await untilAll(to, 'DELIVERED')
    expect(takenAt(to)).toHaveLength(11)
    await end(to)
  })

  it('are signed twice while the secret rotates, and once after that', async () => {
    const { store, ring } = installation.vault
    const to = await subscribe()
    const { endpointId, path } = to
    const fresh = makeWebhookSecret()
    const turn = async (atOnce: boolean, secret = fresh) =>
      rotateSecret(store, { endpointId, secret: ring.sealWebhookSecret(secret, endpointId), atOnce }, BY, Date.now())
    expect(await turn(false)).toHaveProperty('done')
    expect(await turn(false)).toEqual({ refused: 'rotating' })
    // The receiver knows only the former secret.
    await happen('rotating')
    await untilAll(to, 'DELIVERED')
    expect(takenAt(to)[0]?.headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/)
    receiver.trust(path, fresh.reveal())
    await happen('with the new one')
    await untilAll(to, 'DELIVERED', 2)
    const last = makeWebhookSecret()
    expect(await turn(true, last)).toHaveProperty('done')
    receiver.trust(path, last.reveal())
    await happen('after a leak')
    await untilAll(to, 'DELIVERED', 3)
    expect(takenAt(to)[2]?.headers['webhook-signature']).toMatch(/^v1,\S{44}$/)
    await end(to)
  })

  it('stop at a 410 until an operator enables the endpoint, and then go on', async () => {
    const { store } = installation.vault
    const to = await subscribe()
    receiver.behave(to.path, (_, response) => response.writeHead(410).end())
    await happen('gone')
    await until(async () =>
      (await endpoints.list(store)).some(one => one.endpointId === to.endpointId && one.disabledAt),
    )
    const other = await subscribe()
    await happen('later')
    // The scheduler has looked for due deliveries and has skipped the disabled endpoint.
    await untilAll(other, 'DELIVERED')
    expect(takenAt(to)).toHaveLength(1)
    await end(other)
    receiver.behave(to.path, (_, response) => response.writeHead(204).end())
    expect(await enableEndpoint(store, to.endpointId, BY)).toHaveProperty('done')
    expect(await enableEndpoint(store, to.endpointId, BY)).toEqual({ refused: 'not_disabled' })
    await untilAll(to, 'DELIVERED', 2)
    await end(to)
  })

  it('wait as long as Retry-After says, and then come one at a time', async () => {
    const to = await subscribe()
    let askedAt = 0
    receiver.behave(to.path, (_, response) => {
      const isFirst = askedAt === 0
      if (isFirst) askedAt = Date.now()
      response.writeHead(isFirst ? 503 : 204, isFirst ? { 'retry-after': '2' } : {}).end()
    })
    await happen('busy')
    await until(() => takenAt(to).length === 1)
    await until(async () => (await deliveriesTo(to))[0]?.state === 'WAITING')
    await happen('behind it')
    await untilAll(to, 'DELIVERED', 2)
    expect(Date.now() - askedAt).toBeGreaterThanOrEqual(2_000)
    expect(receiver.atOnce.get(to.path)).toBe(1)
    await end(to)
  })
})

/** Removes the keys of one installation as FLUSHALL would remove all, because other tests use the same server. */
async function flush(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url)
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 }))
    if ((keys as string[]).length > 0) await redis.unlink(...(keys as string[]))
  redis.disconnect()
}
