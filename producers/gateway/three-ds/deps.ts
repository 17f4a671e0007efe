// The dependencies of the 3-D Secure service's routes. This is the only HTTP process with the key ring: unlike the
// gateway, it decrypts cards.
import type { Clock } from '../../../src/clock.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { Sealer } from '../../../src/store/three-ds/authentication-row.ts'
import type { Ports } from '../../../src/three-ds/ports.ts'
import type { Caller as ThreeDsCaller } from '../../../src/three-ds/record.ts'
import type { LiveRing } from '../../../src/vault/ring/key-ring.ts'
import type { Caller } from '../app.ts'
import type { GatewaySettings } from '../deps.ts'
import type { ServerDeps } from '../server/service.ts'
import type { ThreeDsMetrics } from './metrics.ts'

export interface ThreeDsDeps extends ServerDeps {
  settings: Pick<GatewaySettings, 'rateLimit' | 'inFlightMax'>
  metrics: ThreeDsMetrics
  store: Store
  sealer: Sealer & Pick<LiveRing, 'refresh'>
  ports: Ports
  clock: Clock
}

/** The prefix of the service's paths. */
export const SERVICE = '/oidc/3ds-service'
/** The path to which directory servers send results, and the one to which browsers return. */
export const RESULTS = `${SERVICE}/v2/results`
export const RETURN = `${SERVICE}/v2/return`

/** The caller for the flows in src/three-ds, with the entities that these credentials act for. */
export function callerOf({ client }: Pick<Caller, 'client'>): ThreeDsCaller {
  return { clientId: client.clientId, entities: client.entities }
}
