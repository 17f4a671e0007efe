// Webhooks whose tries are counted: each receiver answers at once, and none is given up because it answers late. The delays are
// seconds instead of days.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { enableEndpoint, redeliver, rotateSecret } from '../../../src/acts/events.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { describeEngines } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import { BY, openWebhookBench, type WebhookBench } from './bench.ts'
import { PACES } from './quick.ts'

describeEngines('webhooks', engine => {
  let bench: WebhookBench
  beforeAll(async () => {
    bench = await openWebhookBench(engine, PACES.patient)
  })
  afterAll(() => bench?.close())

  it('are signed so that the published library verifies them, and hold type, time and names', async () => {
    const { subscribe, happen, takenAt, untilAll, end } = bench
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

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('have one id at each try, and the schedule ends: the last one fails for good', async () => {
    const { receiver, installation, subscribe, happen, deliveriesTo, takenAt, untilAll, end } = bench
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
    const { receiver, installation, subscribe, happen, takenAt, untilAll, end } = bench
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
    const { receiver, installation, subscribe, happen, takenAt, untilAll, end } = bench
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
    const { receiver, subscribe, happen, deliveriesTo, takenAt, untilAll, end } = bench
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
