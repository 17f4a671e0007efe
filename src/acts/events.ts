// What an operator does to subscriptions and deliveries: adds and removes endpoints, rotates their secrets, enables a
// disabled endpoint, repeats a delivery. Secrets arrive here already sealed. No audit row holds a secret or the path of
// a URL.
import * as clients from '../store/access/clients.ts'
import * as deliveries from '../store/event/deliveries.ts'
import * as endpoints from '../store/event/endpoints.ts'
import type { Db, Store } from '../store/pool.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'
import { grantEndpoint } from './endpoint-grants.ts'
import type { GrantRing } from './grants.ts'

export type EndpointRefusal =
  | 'no_client'
  | 'client_revoked'
  | 'queue_subscribed'
  | 'no_endpoint'
  | 'no_secret'
  | 'rotating'
  | 'not_disabled'
  | 'not_admin'

/**
 * For how long deliveries are also signed with the former secret after a rotation, so that the receiver can change
 * over.
 */
export const OVERLAP_MS = 24 * 3_600_000

export function addEndpoint(
  store: Store,
  ring: GrantRing,
  endpoint: endpoints.NewEndpoint,
  by: By,
): Promise<ActResult<endpoints.NewEndpoint, EndpointRefusal>> {
  return perform(store, { action: 'events.add', subject: endpoint.endpointId }, by, async db => {
    const { clientId, url, events } = endpoint
    const client = await clients.find(db, clientId)
    if (!client || client.system) return { refused: 'no_client' }
    if (client.revokedAt !== null) return { refused: 'client_revoked' }
    if (events.includes('key.expiring') && !client.roles.includes('ADMIN')) return { refused: 'not_admin' }
    if (!(await endpoints.insert(db, endpoint))) return { refused: 'queue_subscribed' }
    await grantEndpoint(db, ring, endpoint)
    return { done: endpoint, detail: { client_id: clientId, to: placeOf(url), events } }
  })
}

/** Removes an endpoint. Its open deliveries are ended: no further attempt begins. */
export function removeEndpoint(
  store: Store,
  endpointId: string,
  by: By,
): Promise<ActResult<{ ended: number }, EndpointRefusal>> {
  return onEndpoint(store, 'events.remove', endpointId, by, async (db, endpoint) => {
    await endpoints.remove(db, endpointId)
    const ended = await deliveries.endAll(db, endpointId, 'endpoint_removed')
    return { done: { ended }, detail: { client_id: endpoint.clientId, to: placeOf(endpoint.url), ended } }
  })
}

/** Replaces the secret. Both secrets sign for a day; with `atOnce` the former secret ends now, as after a leak. */
export function rotateSecret(
  store: Store,
  { endpointId, secret, atOnce }: { endpointId: string; secret: endpoints.SealedSecret; atOnce: boolean },
  by: By,
  now: number,
): Promise<ActResult<{ formerUntil: number | null }, EndpointRefusal>> {
  return onEndpoint(store, 'events.rotate-secret', endpointId, by, async (db, { clientId, url, formerUntil }) => {
    if (url === null) return { refused: 'no_secret' }
    // Only two secrets can be valid: another rotation would end the former secret before its day is over.
    if (!atOnce && (formerUntil ?? 0) > now) return { refused: 'rotating' }
    await endpoints.rotate(db, endpointId, secret, atOnce ? 0 : OVERLAP_MS)
    return { done: { formerUntil: atOnce ? null : now + OVERLAP_MS }, detail: { client_id: clientId, at_once: atOnce } }
  })
}

export function enableEndpoint(
  store: Store,
  endpointId: string,
  by: By,
): Promise<ActResult<endpoints.Endpoint, EndpointRefusal>> {
  return onEndpoint(store, 'events.enable', endpointId, by, async (db, endpoint) => {
    if (endpoint.disabledAt === null) return { refused: 'not_disabled' }
    await endpoints.enable(db, endpointId)
    return { done: { ...endpoint, disabledAt: null }, detail: { client_id: endpoint.clientId } }
  })
}

export type DeliveryRefusal = 'no_delivery' | 'no_endpoint' | 'client_revoked' | 'endpoint_disabled' | 'under_way'

/** Tries a delivery again: its schedule of attempts starts from the beginning. */
export function redeliver(
  store: Store,
  deliveryId: string,
  by: By,
): Promise<ActResult<deliveries.Delivery, DeliveryRefusal>> {
  return perform<deliveries.Delivery, DeliveryRefusal>(
    store,
    { action: 'events.redeliver', subject: deliveryId },
    by,
    async db => {
      const delivery = await deliveries.find(db, deliveryId)
      if (!delivery) return { refused: 'no_delivery' }
      const { endpointId, clientId, type, state } = delivery
      const endpoint = await endpoints.lock(db, endpointId)
      if (!endpoint) return { refused: 'no_endpoint' }
      if ((await clients.find(db, clientId))?.revokedAt !== null) return { refused: 'client_revoked' }
      // Nothing is sent to a disabled endpoint.
      if (endpoint.disabledAt !== null) return { refused: 'endpoint_disabled' }
      if (!(await deliveries.redeliver(db, deliveryId))) return { refused: 'under_way' }
      return { done: delivery, detail: { client_id: clientId, endpoint_id: endpointId, event: type, state } }
    },
  )
}

function onEndpoint<Done>(
  store: Store,
  action: string,
  endpointId: string,
  by: By,
  decide: (db: Db, endpoint: endpoints.Endpoint) => Promise<Decided<Done, EndpointRefusal>>,
): Promise<ActResult<Done, EndpointRefusal>> {
  return perform<Done, EndpointRefusal>(store, { action, subject: endpointId }, by, async db => {
    const endpoint = await endpoints.lock(db, endpointId)
    return endpoint ? decide(db, endpoint) : { refused: 'no_endpoint' }
  })
}

/** The URL's origin: paths and queries of webhook URLs often hold secrets. */
function placeOf(url: string | null): string {
  return url === null ? 'queue' : new URL(url).origin
}
