// Which clients get an event, and how long events are kept, without sending any.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addEndpoint, redeliver, removeEndpoint } from '../../../src/acts/events.ts'
import { ResultEvent } from '../../../src/job/answer/result.ts'
import { EVENTS, type EventType } from '../../../src/job/event.ts'
import * as clients from '../../../src/store/access/clients.ts'
import { BATCH_LIFE } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import { tell, tellUrls } from '../../../src/store/event/tell.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import type { Store } from '../../../src/store/pool.ts'
import { sweep } from '../../../src/store/retention.ts'
import { tellStalls } from '../../../workers/batch-progress.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { CODER } from '../coder.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const DAY_MS = 86_400_000

describeStore('an event', engine => {
  let installation: Installation
  let store: Store
  beforeAll(async () => {
    installation = await openInstallation(engine)
    store = installation.vault.store
  })
  afterAll(() => installation?.close())

  let next = 0
  async function newClient(): Promise<string> {
    next += 1
    const { credentials } = await installation.addClient(`client-${next}`)
    return credentials.signingKey.clientId
  }
  async function subscribe(
    clientId: string,
    to: 'queue' | 'url',
    events: readonly EventType[] = EVENTS.filter(type => type !== 'key.expiring'),
  ): Promise<string | undefined> {
    const endpointId = randomUUID()
    const url = to === 'queue' ? null : `https://receiver.example/${endpointId}`
    const secret = url === null ? null : { sealed: randomBytes(40), keyVersion: 1 }
    const endpoint = { endpointId, clientId, url, events: [...events], secret }
    const verdict = await addEndpoint(store, installation.vault.ring, endpoint, BY)
    return 'done' in verdict ? endpointId : undefined
  }
  const happen = (clientId: string, subject = 'b1', type: EventType = 'batch.finished', revision = 1) =>
    store.transaction(db =>
      tell(db, CODER, { type, clientId, subject, revision, data: { batch_id: subject, revision } }),
    )
  const untold = (clientId: string) => outbox.take(store, clientId, null, Date.now() + 60_000, 100)
  const deliveriesOf = (clientId: string) => deliveries.list(store, { clientId, limit: 100 })
  const typesOf = async (clientId: string) =>
    (
      await store.query<{ type: string }>({
        text: 'select type from tokenmill.event where client_id = $1',
        values: [clientId],
      })
    ).rows.map(({ type }) => type)

  describe('that nobody is subscribed to', () => {
    it('is kept and told to nobody', async () => {
      const clientId = await newClient()
      await happen(clientId)
      await subscribe(await newClient(), 'queue')
      await subscribe(clientId, 'url', ['report.failed'])
      expect(await typesOf(clientId)).toEqual(['batch.finished'])
      expect(await untold(clientId)).toEqual([])
      expect(await deliveriesOf(clientId)).toEqual([])
    })

    it('and that the queue gets anyway is not even kept', async () => {
      const clientId = await newClient()
      await subscribe(clientId, 'queue')
      const event = { type: 'scheme-token.updated', clientId, subject: 's', revision: 1, data: {} } as const
      await store.transaction(db => tellUrls(db, CODER, event))
      expect(await typesOf(clientId)).toEqual([])
      expect(await untold(clientId)).toEqual([])
      await subscribe(clientId, 'url')
      await store.transaction(db => tellUrls(db, CODER, event))
      expect(await deliveriesOf(clientId)).toMatchObject([{ type: 'scheme-token.updated', state: 'WAITING' }])
      expect(await untold(clientId)).toEqual([])
    })
  })

  it('goes to each URL and once to the queue, under an id of each', async () => {
    const clientId = await newClient()
    await subscribe(clientId, 'queue')
    expect(await subscribe(clientId, 'queue')).toBeUndefined()
    await subscribe(clientId, 'url')
    await subscribe(clientId, 'url')
    await happen(clientId)
    await expect(happen(clientId)).rejects.toThrow()
    const [row, ...others] = await untold(clientId)
    expect(others).toEqual([])
    const told = ResultEvent.parse(JSON.parse(row?.body ?? ''))
    expect(told).toMatchObject({
      event: 'batch.finished',
      subject: { id: 'b1', revision: 1 },
      result_id: row?.resultId,
    })
    const ids = (await deliveriesOf(clientId)).map(({ deliveryId }) => deliveryId)
    expect(new Set([...ids, row?.resultId]).size).toBe(3)
  })

  it('is not told to a revoked client, nor where the subscription was removed', async () => {
    const clientId = await newClient()
    const endpointId = (await subscribe(clientId, 'url')) ?? ''
    await happen(clientId)
    expect(await removeEndpoint(store, endpointId, BY)).toEqual({ done: { ended: 1 } })
    await happen(clientId, 'b2')
    expect(await deliveriesOf(clientId)).toMatchObject([{ state: 'FAILED', reason: 'endpoint_removed' }])
    await subscribe(clientId, 'url')
    await clients.revoke(store, clientId)
    await happen(clientId, 'b3')
    expect(await deliveriesOf(clientId)).toHaveLength(1)
    expect(await subscribe(clientId, 'url')).toBeUndefined()
  })

  it('is not posted any more once its client is revoked, nor due, nor redelivered', async () => {
    const claim = () => deliveries.claim(store, { leaseMs: 0, limit: 100 })
    // Claims the deliveries of other tests.
    await claim()
    const before = await deliveries.measure(store)
    const clientId = await newClient()
    await subscribe(clientId, 'url')
    await happen(clientId)
    const [delivery = expect.fail('it is written')] = await deliveriesOf(clientId)
    const ids = async () => (await claim()).map(({ deliveryId }) => deliveryId)
    expect(await ids()).toContain(delivery.deliveryId)
    expect(await deliveries.findOutgoing(store, delivery.deliveryId, 1)).toBeDefined()
    await happen(clientId, 'b2')
    expect((await deliveries.measure(store)).rows).toBe(before.rows + 2)

    await clients.revoke(store, clientId)
    // The lease of the first claim has ended, so its job counts as lost.
    expect(await ids()).not.toContain(delivery.deliveryId)
    expect(await deliveries.findOutgoing(store, delivery.deliveryId, 1)).toBeUndefined()
    expect((await deliveries.measure(store)).rows).toBe(before.rows)
    expect(await redeliver(store, delivery.deliveryId, BY)).toEqual({ refused: 'client_revoked' })
  })

  it('whose attempt is recorded while it is claimed again stays as it was recorded', async () => {
    const claim = () => deliveries.claim(store, { leaseMs: 0, limit: 100 })
    const clientId = await newClient()
    await subscribe(clientId, 'url')
    await happen(clientId)
    const [{ deliveryId } = expect.fail('it is written')] = await deliveriesOf(clientId)
    const { attempt } = (await claim()).find(one => one.deliveryId === deliveryId) ?? expect.fail('it is due')
    const next = { state: 'WAITING', inMs: 600_000, step: 1 } as const
    const claimed = Promise.withResolvers<deliveries.Attempt[]>()
    await store.transaction(async db => {
      await deliveries.record(db, { deliveryId, attempt }, { next, status: 500, reason: 'status' })
      claim().then(claimed.resolve, claimed.reject)
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      await until(async () => (await store.query({ text: waits })).count === 1, { what: 'the claim to wait' })
    })
    expect((await claimed.promise).map(one => one.deliveryId)).not.toContain(deliveryId)
    expect(await deliveries.find(store, deliveryId)).toMatchObject({ state: 'WAITING' })
  })

  it('that its endpoint keeps failing to take is trouble until it takes it, whenever an operator tries anew', async () => {
    const clientId = await newClient()
    const endpointId = (await subscribe(clientId, 'url')) ?? ''
    await happen(clientId)
    const [{ deliveryId } = expect.fail('it is written')] = await deliveriesOf(clientId)
    const isFailing = async () =>
      (await endpoints.listTroubled(store, { ...endpoints.TROUBLE, failedSince: Date.now() - DAY_MS })).some(
        one => one.endpointId === endpointId && one.state === 'failing',
      )
    const answer = async (status: number, next: deliveries.Tried['next']) => {
      const claimed = await deliveries.claim(store, { leaseMs: 60_000, limit: 100 })
      const { attempt } = claimed.find(one => one.deliveryId === deliveryId) ?? expect.fail('it is due')
      const wasFailing = await isFailing()
      const reason = status === 204 ? null : 'status'
      expect(await deliveries.record(store, { deliveryId, attempt }, { next, status, reason })).toBe(true)
      return wasFailing
    }
    const failAt = (step: number) => answer(500, { state: 'WAITING', inMs: 0, step: step + 1 })
    for (const step of [0, 1]) await failAt(step)
    expect(await redeliver(store, deliveryId, BY)).toHaveProperty('done')
    await failAt(0)
    // A delivery to an endpoint that answers 410 waits, which doesn't count as a failure.
    await answer(410, { state: 'WAITING', inMs: 0, step: 1 })
    expect(await isFailing()).toBe(false)
    await failAt(1)
    expect(await isFailing()).toBe(true)
    expect(await redeliver(store, deliveryId, BY)).toHaveProperty('done')
    expect(await isFailing()).toBe(true)
    // It also counts as failing while an attempt is made.
    expect(await failAt(0)).toBe(true)
    expect(await isFailing()).toBe(true)
    await answer(204, { state: 'DELIVERED' })
    expect(await isFailing()).toBe(false)
    expect(await redeliver(store, deliveryId, BY)).toHaveProperty('done')
    await failAt(0)
    expect(await isFailing()).toBe(false)
  })

  it('is not said to be due where its endpoint is disabled', async () => {
    const clientId = await newClient()
    const endpointId = (await subscribe(clientId, 'url')) ?? ''
    await happen(clientId)
    const [delivery = expect.fail('it is written')] = await deliveriesOf(clientId)
    await endpoints.disable(store, endpointId)
    expect(await redeliver(store, delivery.deliveryId, BY)).toEqual({ refused: 'endpoint_disabled' })
  })

  it('counts neither in the hold-back nor in the alarm of the outbox, and ends after 7 days', async () => {
    const clientId = await newClient()
    await subscribe(clientId, 'queue')
    await subscribe(clientId, 'url')
    await happen(clientId)
    const ofClient = (rows: readonly { clientId: string }[]) => rows.filter(row => row.clientId === clientId)
    expect(ofClient(await outbox.pendingQueues(store))).toHaveLength(1)
    expect(ofClient(await outbox.pendingAnswers(store))).toEqual([])
    expect(await outbox.pendingOf(store, clientId, null, 10)).toBe(0)

    await sweep(store, 90, Date.now() + 6.9 * DAY_MS)
    expect(
      [await untold(clientId), await deliveriesOf(clientId), await typesOf(clientId)].map(one => one.length),
    ).toEqual([1, 1, 1])
    await sweep(store, 90, Date.now() + 7.1 * DAY_MS)
    expect(
      [await untold(clientId), await deliveriesOf(clientId), await typesOf(clientId)].map(one => one.length),
    ).toEqual([0, 0, 0])
  })

  it('tells of a stall once, and of the next one again', async () => {
    const clientId = await newClient()
    await subscribe(clientId, 'queue', ['batch.stalled'])
    const { batchNo } = await batches.open(store, {
      clientId,
      batchId: 'still',
      recordKind: 'token-create',
      tokenScope: null,
      chunkRecords: 1,
      layout: {},
      entityId: null,
      acceptedAt: Date.now(),
      extent: { chunks: 2, rows: 2, name: null, sha256: null },
    })
    const look = (afterMs: number) => tellStalls({ store, ring: CODER, clock: () => Date.now() + afterMs })
    await look(BATCH_LIFE.stalledMs - 40_000)
    expect(await typesOf(clientId)).toEqual([])
    for (let n = 0; n < 3; n += 1) await look(BATCH_LIFE.stalledMs + n)
    expect(await typesOf(clientId)).toEqual(['batch.stalled'])
    // A chunk was answered, so the next stall is a new one.
    const active = `update tokenmill.batch set active_at = now() + interval '1 minute' where batch_no = $1`
    await store.query({ text: active, values: [batchNo] })
    await look(BATCH_LIFE.stalledMs)
    expect(await typesOf(clientId)).toEqual(['batch.stalled'])
    await Promise.all([1, 2].map(n => look(60_000 + BATCH_LIFE.stalledMs + n)))
    const told = (await untold(clientId)).map(({ body }) => ResultEvent.parse(JSON.parse(body ?? '')).data)
    expect(told).toMatchObject([
      { batch_id: 'still', revision: 1, chunks: 0, chunks_expected: 2 },
      { batch_id: 'still', revision: 2 },
    ])
  })

  it('shows secrets and URLs, whose paths often hold secrets, to nobody who only reads', async () => {
    const read = (role: string, column: string) =>
      store.transaction(async db => {
        await db.query({ text: `set local role ${role}` })
        return db.query({ text: `select ${column} from tokenmill.endpoint` })
      })
    for (const role of ['tokenmill_reader', 'tokenmill_gateway'])
      for (const column of ['sealed', 'former_sealed', 'url'])
        await expect(read(role, column)).rejects.toThrow('permission denied')
    expect((await read('tokenmill_reader', 'endpoint_id')).count).toBeGreaterThan(0)
  })
})
