// The owner of the database can't decide where an event goes: a worker sends nothing to an endpoint that tokenmill did not
// write, or that was changed since, nor an event of one client to the endpoint of another.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { addEndpoint, removeEndpoint } from '../../../src/acts/events.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import { tell } from '../../../src/store/event/tell.ts'
import { makeWebhookSecret } from '../../../src/vault/webhook-secret.ts'
import { type Judged, SCHEDULE } from '../../../workers/webhook/schedule.ts'
import { openWebhook } from '../../../workers/webhook.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { BY } from './bench.ts'

describeStore('a webhook', engine => {
  let installation: Installation
  let clientId: string
  let otherId: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    clientId = installation.credentials.signingKey.clientId
    otherId = (await installation.addClient('other')).credentials.signingKey.clientId
  })
  afterAll(() => installation?.close())

  /** Runs a statement as the owner of the database. */
  const own = (text: string, ...values: unknown[]) => installation.vault.store.query({ text, values })
  const ungranted = () => listUngranted(installation.vault.store, installation.vault.ring, GRANT_LISTS)

  async function subscribe(of: string): Promise<string> {
    const { store, ring } = installation.vault
    const endpointId = randomUUID()
    const secret = ring.sealWebhookSecret(makeWebhookSecret(), endpointId)
    const url = `https://receiver.example/${endpointId}`
    const endpoint = { endpointId, clientId: of, url, events: ['batch.finished' as const], secret }
    expect(await addEndpoint(store, ring, endpoint, BY)).toHaveProperty('done')
    return endpointId
  }

  /** Lets a worker try the delivery that is due. Returns where it posted, why it didn't, and which rows it named. */
  async function attempt() {
    const { store, ring } = installation.vault
    const [claimed] = await deliveries.claim(store, { leaseMs: 60_000, limit: 1 })
    const { deliveryId, attempt } = claimed ?? expect.fail('no delivery')
    const posted: string[] = []
    const named: string[] = []
    const post = async ({ url }: { url: string }) => {
      posted.push(url)
      return { status: 204 }
    }
    const webhook = openWebhook({ webhooks: { schedule: SCHEDULE, post } })
    const onUngranted = (kind: string, id: string) => named.push(`${kind} ${id}`)
    const deps = { store, ring, clock: Date.now, onUngranted } as never
    const outgoing = await deliveries.findOutgoing(store, deliveryId, attempt)
    const reached = await webhook.reach?.({} as never, { outgoing }, deps, undefined)
    return { posted, named, tried: (reached as { judged?: Judged } | undefined)?.judged?.tried }
  }
  const happen = () =>
    installation.vault.store.transaction(db =>
      tell(db, installation.vault.ring, {
        type: 'batch.finished',
        clientId,
        subject: randomUUID(),
        revision: 1,
        data: {},
      }),
    )

  let endpointId: string
  beforeEach(async () => {
    expect(await ungranted()).toEqual([])
    endpointId = await subscribe(clientId)
    return async () => {
      await removeEndpoint(installation.vault.store, endpointId, BY)
      await own('delete from tokenmill.delivery')
    }
  })

  it.each([
    ['another URL', `url = 'https://other.example/'`],
    ['an address within the network', `url = 'https://10.0.0.1/'`],
    ['further events', `events = events || '{key.expiring}'`],
    ['no code', 'mac = null, mac_version = null'],
  ])('to an endpoint to which the owner gave %s is not sent, waits, and the endpoint is named', async (_, set) => {
    await happen()
    await own(`update tokenmill.endpoint set ${set} where endpoint_id = $1`, endpointId)
    expect(await attempt()).toEqual({
      posted: [],
      named: [`endpoint ${endpointId}`],
      tried: {
        next: expect.objectContaining({ state: 'WAITING', step: 1 }),
        status: null,
        reason: 'endpoint_ungranted',
      },
    })
    expect(await ungranted()).toEqual([`endpoint ${endpointId}`])
  })

  it('to an endpoint that was given to another client, or minted, is not sent', async () => {
    await happen()
    const minted = randomUUID()
    await own(
      `insert into tokenmill.endpoint (endpoint_id, client_id, url, events, sealed, seal_version, mac, mac_version)
select $2, client_id, url, events, sealed, seal_version, mac, mac_version
from tokenmill.endpoint where endpoint_id = $1`,
      endpointId,
      minted,
    )
    await own('update tokenmill.delivery set endpoint_id = $1', minted)
    expect(await attempt()).toMatchObject({ posted: [], named: [`endpoint ${minted}`] })
    await own('delete from tokenmill.delivery')
    await own('delete from tokenmill.endpoint where endpoint_id = $1', minted)
  })

  it('of one client is not sent to the endpoint of another', async () => {
    await happen()
    const theirs = await subscribe(otherId)
    await own('update tokenmill.delivery set endpoint_id = $1', theirs)
    expect(await attempt()).toMatchObject({ posted: [], tried: { reason: 'misdirected' } })
    await own('delete from tokenmill.delivery')
    await removeEndpoint(installation.vault.store, theirs, BY)
  })

  it('is sent to an endpoint that only workers have changed since', async () => {
    await happen()
    await own('update tokenmill.endpoint set at_once = 1, slow_until = now() where endpoint_id = $1', endpointId)
    expect(await attempt()).toMatchObject({ posted: [expect.stringContaining(endpointId)], named: [] })
  })
})
