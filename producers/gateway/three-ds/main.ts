// Opens one process of the 3-D Secure service: the gateway's server with other routes, and the key ring. At the end its
// lifetime closes what is opened here before what the caller opened.
import { systemClock } from '../../../src/clock.ts'
import type { Config } from '../../../src/config.ts'
import { openHealth } from '../../../src/health.ts'
import type { Lifetime } from '../../../src/lifetime.ts'
import { describeError, type Logger } from '../../../src/logger.ts'
import type { MetricsRegistry } from '../../../src/metrics.ts'
import { openOwnOps, portOf } from '../../../src/ops.ts'
import type { Outbound } from '../../../src/outbound.ts'
import { every } from '../../../src/recurring.ts'
import { openCaptureUse } from '../../../src/store/capture/use.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as storeServer from '../../../src/store/server.ts'
import { expireOverdue } from '../../../src/three-ds/result.ts'
import type { Tracer } from '../../../src/trace/tracer.ts'
import type { PrivateHalves } from '../../../src/vault/private-half.ts'
import type { LiveRing } from '../../../src/vault/ring/key-ring.ts'
import { openTellUngranted } from '../../../src/vault/ring/ungranted.ts'
import { listen, type Tls } from '../../http/listen.ts'
import type { GatewayApp } from '../app.ts'
import { byCodes, openDirectory } from '../directory.ts'
import { openAuthenticate } from '../server/authenticate.ts'
import { openBearerFor } from '../server/issuers.ts'
import { opsPages } from '../server/ops.ts'
import { openServer } from '../server/server.ts'
import type { RoutePlugin } from '../server/service.ts'
import { authenticationRoutes } from './authentications.ts'
import { RESULTS, SERVICE, type ThreeDsDeps } from './deps.ts'
import { THREE_DS_NOTES } from './document/operation-notes.ts'
import { THREE_DS_ERROR_BODY } from './error-body.ts'
import { jwtRoutes } from './jwt.ts'
import { lookupRoutes } from './lookup.ts'
import { openThreeDsMetrics } from './metrics.ts'
import { openPorts } from './ports.ts'
import { resultRoutes } from './results.ts'

export interface Opened {
  config: Pick<
    Config,
    | 'audience'
    | 'jwtIssuers'
    | 'rateLimit'
    | 'gatewayInFlightMax'
    | 'httpHost'
    | 'metricsPort'
    | 'threeDsPort'
    | 'threeDsUrl'
    | 'threeDsRefNumber'
    | 'threeDsOperatorId'
    | 'threeDsTimeoutMs'
  >
  log: Logger
  registry: MetricsRegistry
  lifetime: Lifetime
  store: Store
  halves: PrivateHalves
  ring: LiveRing
  outbound: Outbound
  tls: Tls | undefined
  tracer: Tracer | undefined
}

export interface ThreeDs {
  port: number
  /** The port of its metrics. */
  opsPort: number
  deps: ThreeDsDeps
}

const EXPIRE_MS = 1_000
const EXPIRED_MAX = 100

/** In the order of the OpenAPI document. */
const THREE_DS_ROUTES: readonly RoutePlugin<ThreeDsDeps>[] = [
  authenticationRoutes,
  lookupRoutes,
  jwtRoutes,
  resultRoutes,
  (app: GatewayApp, { health }) => opsPages(app, health, ['/oidc/3ds-service']),
]

const DOCUMENT = {
  title: 'tokenmill: 3-D Secure',
  description: 'Authenticates cardholders, and lists how authentications ended.',
}
const SERVED = { routes: THREE_DS_ROUTES, notes: THREE_DS_NOTES, errorBody: THREE_DS_ERROR_BODY }

/** Opens the service and listens. Throws `PortInUse` if the port is in use. */
export async function openThreeDs(opened: Opened): Promise<ThreeDs> {
  const { config, log, registry, lifetime, store, halves, ring, outbound, tls, tracer } = opened
  // One host whose clock is wrong would end the challenges of all.
  const { clock, aheadMs, stop } = await storeServer.openStoreClock(store, systemClock, { log })
  lifetime.onClose('clock', stop)
  const metrics = openThreeDsMetrics(registry)
  const health = openHealth(registry, { store: storeServer.watched(store), clock: { aheadMs } })
  const onUngranted = openTellUngranted(log, metrics.ungranted)
  const directory = openDirectory({ store, clock, isOurs: byCodes(ring), onUngranted })
  const bearer = openBearerFor(config, outbound, clock)
  const urlAt = (port: number) => `${config.threeDsUrl ?? addressOf(config.httpHost, port, tls)}${RESULTS}`
  const { threeDsRefNumber: refNumber, threeDsOperatorId: operatorId } = config
  const server = { url: urlAt(config.threeDsPort), refNumber, operatorId }
  const captureUse = openCaptureUse({ store, clock, log })
  lifetime.onClose('use of capture keys', captureUse.close)
  const vault = { store, ring, halves, directory, captureUse, outbound, metrics, clock }
  const ports = openPorts({ ...vault, onUngranted }, server, config.threeDsTimeoutMs)
  const deps: ThreeDsDeps = {
    settings: { rateLimit: config.rateLimit, inFlightMax: config.gatewayInFlightMax },
    store,
    sealer: ring,
    ports,
    authenticate: openAuthenticate({ directory, apiKeys: ring, bearer }),
    isKnownKey: async (clientId, key) => (await ports.authentications.findByKey(clientId, key)) !== undefined,
    clock,
    metrics,
    health,
    log,
    tracer,
  }
  registry.collectProcess()
  const ops = await openOwnOps(health, { host: config.httpHost, port: portOf('three-ds', config.metricsPort) })
  lifetime.onClose('metrics', ops.close)
  log.info({ opsPort: ops.port }, 'showing metrics')
  const app = await openServer(deps, { services: [SERVED], document: DOCUMENT, prefix: SERVICE, tls })
  const held = { back: 0 }
  lifetime.onClose(
    'end of authentications',
    every(EXPIRE_MS, () => expire(deps, held), { log }),
  )
  const place = { host: config.httpHost, port: config.threeDsPort, setting: 'TOKENMILL_THREE_DS_PORT' }
  const port = await listen(app, place, { lifetime, log })
  // The real number of port 0 is known only now.
  server.url = urlAt(port)
  return { port, opsPort: ops.port, deps }
}

function addressOf(host: string, port: number, tls: Tls | undefined): string {
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `${tls ? 'https' : 'http'}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/** Ends abandoned authentications as U. Every process does this; if two try at once, one is first. */
async function expire({ ports, metrics, log }: ThreeDsDeps, held: { back: number }): Promise<void> {
  // Those that can't be ended stay the oldest, so there must be room for others.
  const { ended, failed } = await expireOverdue(ports, EXPIRED_MAX + held.back)
  held.back = failed.length
  for (const { state } of ended) metrics.ended.inc({ outcome: state })
  const [first] = failed
  if (first)
    log.error(
      { authentication: first.authenticationId, failed: failed.length, error: describeError(first.error) },
      'authentications whose time is over could not be ended; the next round tries again',
    )
}
