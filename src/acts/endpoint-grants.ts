// The codes of subscriptions: which client gets which events, and at which URL.
import * as endpoints from '../store/event/endpoints.ts'
import type { Db } from '../store/pool.ts'
import { type EndpointRow, endpointText, isGranted, type MacOfRow } from '../vault/ring/grants.ts'
import { type Grant, macOf } from './grant-rows.ts'
import { type GrantRing, type ListGrants, sealAsMeant } from './grants.ts'

/** Codes an endpoint that was just written. `meant`: as it was to be written. */
export async function grantEndpoint(db: Db, ring: GrantRing, meant: EndpointRow): Promise<void> {
  const endpoint = await endpoints.lock(db, meant.endpointId)
  await sealAsMeant(db, ring, endpoint && ofEndpoint(endpoint), endpointText(meant))
}

/** Whether tokenmill wrote the endpoint. */
export function isEndpointGranted(ring: Pick<GrantRing, 'grantMacBy'>, endpoint: EndpointRow & MacOfRow): boolean {
  return isGranted(ring, endpointText(endpoint), endpoint)
}

export const listEndpointGrants: ListGrants = async db => (await endpoints.list(db)).map(ofEndpoint)

function ofEndpoint(endpoint: EndpointRow & MacOfRow): Grant {
  const { endpointId } = endpoint
  return {
    kind: 'endpoint',
    id: endpointId,
    text: endpointText(endpoint),
    isRevoked: false,
    ...macOf(endpoint),
    save: (db, ...code) => endpoints.setMac(db, endpointId, ...code),
  }
}
