// What every route of the 3-D Secure service is handed. Unlike the gateway's, it opens cards: this is the one HTTP
// process that holds the key ring.
import type { Clock } from '../../../src/clock.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { Sealer } from '../../../src/store/three-ds/authentication-row.ts'
import type { Ports } from '../../../src/three-ds/ports.ts'
import type { Caller as ThreeDsCaller } from '../../../src/three-ds/record.ts'
import type { Caller } from '../app.ts'
import type { GatewaySettings, ServerDeps } from '../deps.ts'

export interface ThreeDsDeps extends ServerDeps {
  settings: Pick<GatewaySettings, 'rateLimit' | 'inFlightMax'>
  store: Store
  sealer: Sealer
  ports: Ports
  clock: Clock
}

/** Of the paths of the service. */
export const SERVICE = '/oidc/3ds-service'
/** Where directory servers send results, and where browsers return to. */
export const RESULTS = `${SERVICE}/v2/results`
export const RETURN = `${SERVICE}/v2/return`

/** The client acts for all of its entities, whoever of its users asks. */
export function callerOf({ client }: Pick<Caller, 'client'>): ThreeDsCaller {
  return { clientId: client.clientId, entities: client.entities }
}
