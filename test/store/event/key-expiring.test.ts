// Keys that should be replaced: told once before the date and once at it, to operators' clients that are subscribed.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addEndpoint } from '../../../src/acts/events.ts'
import { listExpiring, tellExpiring } from '../../../src/acts/key/expiring-keys.ts'
import type { Role } from '../../../src/job/catalogue.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import type { Store } from '../../../src/store/pool.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { CODER } from '../coder.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const DAY_MS = 86_400_000

describeStore('a key that should be replaced', engine => {
  let installation: Installation
  let store: Store
  let madeAt: number
  beforeAll(async () => {
    installation = await openInstallation(engine)
    store = installation.vault.store
    madeAt = Date.now()
  })
  afterAll(() => installation?.close())

  async function newClient(name: string, roles: Role[]): Promise<string> {
    return (await installation.addClient(name, { roles })).credentials.signingKey.clientId
  }
  async function subscribe(clientId: string, url: string | null) {
    const secret = url === null ? null : { sealed: randomBytes(40), keyVersion: 1 }
    const events = ['key.expiring' as const]
    const endpoint = { endpointId: randomUUID(), clientId, url, events, secret }
    return addEndpoint(store, installation.vault.ring, endpoint, BY)
  }

  it('is not told before its time is near', async () => {
    expect(await tellExpiring(store, CODER, madeAt + 334 * DAY_MS)).toEqual([])
  })

  it('is told to operators only', async () => {
    expect(await subscribe(await newClient('shop', ['TOKEN_READ']), null)).toEqual({ refused: 'not_admin' })
  })

  it('is told to those who subscribe later than its time, since nobody was told', async () => {
    expect(await tellExpiring(store, CODER, madeAt + 340 * DAY_MS)).toEqual([])
  })

  describe('when its time is near, and when it has come', () => {
    let operator: string
    beforeAll(async () => {
      operator = await newClient('operator', ['ADMIN'])
      await subscribe(operator, null)
      await subscribe(operator, 'https://receiver.example/keys')
    })
    const told = async () =>
      (await outbox.take(store, operator, null, Date.now() + 60_000, 100)).map(({ body }) => JSON.parse(body ?? ''))

    it('is told once for all processes that look', async () => {
      const now = madeAt + 340 * DAY_MS
      const expiring = await listExpiring(store, now)
      expect(new Set(expiring.map(({ kind }) => kind))).toEqual(new Set(['data-key', 'kek', 'signing-key']))
      expect(expiring.map(({ key }) => key)).toContain('seal/1')
      expect(expiring.map(({ key }) => key)).not.toContain('webhook/1')
      const all = await Promise.all(Array.from({ length: 4 }, () => tellExpiring(store, CODER, now)))
      expect(all.flat().length).toBe(expiring.length)
      expect(await deliveries.list(store, { clientId: operator, limit: 100 })).toHaveLength(expiring.length)
      const events = await told()
      expect(events).toHaveLength(expiring.length)
      const seal = events.find(({ subject }) => subject.id === 'seal/1')
      expect(seal).toMatchObject({
        event: 'key.expiring',
        subject: { id: 'seal/1', revision: 1 },
        data: { key: 'seal/1', kind: 'data-key', stage: 'SOON', replace_by: expect.stringMatching(/^\d{4}-/) },
      })
      expect(await tellExpiring(store, CODER, now + DAY_MS)).toEqual([])
    })

    it('is told once more at the date, and not if another took its place', async () => {
      const active = (await dataKeys.list(store)).find(({ purpose, state }) => purpose === 'seal' && state === 'ACTIVE')
      await store.query({
        text: `update tokenmill.data_key set activated_at = now() + interval '200 days' where purpose = 'seal' and version = $1`,
        values: [active?.version],
      })
      const again = await tellExpiring(store, CODER, madeAt + 366 * DAY_MS)
      expect(again.length).toBeGreaterThan(2)
      expect(new Set(again.map(({ stage }) => stage))).toEqual(new Set(['OVER']))
      expect(again.map(({ key }) => key)).not.toContain('seal/1')
      const events = await told()
      expect(events.filter(({ data }) => data.stage === 'OVER')).toHaveLength(again.length)
      expect(await tellExpiring(store, CODER, madeAt + 366 * DAY_MS)).toEqual([])
    })
  })
})
