// Opens one gateway process: request and reply, the directory and the server. At the end its lifetime closes what is
// opened here before what the caller opened. The process holds no key-encryption key.

import { systemClock } from '../../src/clock.ts'
import type { Config } from '../../src/config.ts'
import { openHealth } from '../../src/health.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import { reasonsIn } from '../../src/job/problem.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import type { MetricsRegistry } from '../../src/metrics.ts'
import { openOwnOps, portOf } from '../../src/ops.ts'
import type { Outbound } from '../../src/outbound.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Store } from '../../src/store/pool.ts'
import * as storeServer from '../../src/store/server.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import type { RoleRing } from '../../src/vault/ring/role-ring.ts'
import { openTellUngranted } from '../../src/vault/ring/ungranted.ts'
import type { TrustedKeys } from '../client/trusted-keys.ts'
import { listen, type Tls } from '../http/listen.ts'
import { watchOwnKey } from '../http/own-key.ts'
import { openSigningKeys } from '../signing-keys.ts'
import type { GatewayDeps, GatewayService, SchemeTokens } from './deps.ts'
import { type IsOurs, openDirectory } from './directory.ts'
import { openGatewayMetrics } from './metrics.ts'
import { refusesClock } from './operations/write.ts'
import { openRequestReply, type RequestReply } from './request-reply/request-reply.ts'
import { openAuthenticate } from './server/authenticate.ts'
import { knownIn } from './server/idempotency-key.ts'
import { openBearerFor } from './server/issuers.ts'
import { openServer } from './server/server.ts'
import { openSignedRights } from './signed-rights.ts'

export interface Opened {
  config: Pick<
    Config,
    | 'audience'
    | 'gatewayTimeoutMs'
    | 'gatewayInFlightMax'
    | 'rateLimit'
    | 'batchBytesMax'
    | 'resendMs'
    | 'receiptDays'
    | 'jwtIssuers'
    | 'thirdPartyTypes'
    | 'localSchemes'
    | 'httpHost'
    | 'httpPort'
    | 'metricsPort'
  >
  log: Logger
  registry: MetricsRegistry
  lifetime: Lifetime
  /** Uses the database role `tokenmill_gateway`. */
  store: Store
  queues: Queues
  catalogue: Catalogue
  outbound: Outbound
  signingKey: SigningKey
  ring: RoleRing
  /** The installation's signing keys of this host's files. */
  trusted: TrustedKeys
  /** Absent in a product without networks: no record shows a scheme token. */
  schemeTokens?: SchemeTokens
  tls: Tls | undefined
  tracer?: Tracer | undefined
  services: readonly GatewayService[]
}

export interface Gateway {
  port: number
  /** The port of its metrics. */
  opsPort: number
  deps: GatewayDeps
}

const NO_SCHEME_TOKENS: SchemeTokens = {
  find: async () => undefined,
  findThirdPartyTokens: async () => [],
  unmask: async record => record,
}

const DOCUMENT = {
  title: 'tokenmill',
  description: 'Card tokens, reports and batches over HTTP. Cards are encrypted by the caller.',
}

/** After a write that was refused for the clock of this host the next one is signed by a clock that is right. */
function comparingClock(requestReply: RequestReply, compare: () => Promise<void>): RequestReply {
  return {
    ...requestReply,
    async ask(...asked) {
      const end = await requestReply.ask(...asked)
      if (end.end === 'answered' && refusesClock(reasonsIn(end.result.error))) await compare()
      return end
    },
  }
}

/** Opens the gateway and listens. Throws `PortInUse` if the port is in use. */
export async function openGateway(opened: Opened): Promise<Gateway> {
  const { config, log, registry, lifetime, store, queues, catalogue, signingKey, ring, tls } = opened
  // What this process signs is judged by workers, whose clocks are the store's.
  const { clock, aheadMs, compare, stop } = await storeServer.openStoreClock(store, systemClock, { log })
  lifetime.onClose('clock', stop)
  const settings = {
    audience: config.audience,
    timeoutMs: config.gatewayTimeoutMs,
    inFlightMax: config.gatewayInFlightMax,
    rateLimit: config.rateLimit,
    batchBytesMax: config.batchBytesMax,
    resendMs: config.resendMs,
    receiptDays: config.receiptDays,
  }
  const metrics = openGatewayMetrics(registry, catalogue.kinds)
  const onUngranted = openTellUngranted(log, metrics.ungranted)
  const believing = { store, clock, log }
  const trusted = await openSigningKeys({
    trusted: opened.trusted,
    find: () => signingKeys.findPublic(store),
    ungranted: metrics.ungranted,
    clock,
    log,
  })
  lifetime.onClose('signing keys', trusted.stop)
  const rights = await openSignedRights({ ...believing, audience: config.audience, trusted })
  lifetime.onClose('rights of clients', rights.stop)
  const ownKey = await watchOwnKey(signingKey, { ask: () => liveKeys.isLive(store, signingKey), log })
  lifetime.onClose('own key', ownKey.stop)
  const shared = { queues, store, signingKey, isKeyLive: ownKey.isLive, trusted, settings, clock, metrics, log }
  const requestReply = comparingClock(openRequestReply(shared), compare)
  lifetime.onClose('request and reply', requestReply.close)
  await requestReply.ready
  const health = openHealth(registry, {
    store: storeServer.watched(store),
    queue: queues,
    clock: { aheadMs },
    others: async () => [...(await ownKey.reasons()), ...trusted.reasons(), ...rights.reasons()],
    collect: async () => metrics.inFlight.set(requestReply.inFlight()),
  })
  const isOurs: IsOurs = (_kind, text) => rights.has(text)
  const directory = openDirectory({ store, clock, isOurs, onUngranted })
  const bearer = openBearerFor(config, opened.outbound, clock)
  const authenticate = openAuthenticate({ directory, apiKeys: ring, bearer })
  const deps: GatewayDeps = {
    settings,
    store,
    queues,
    catalogue,
    signingKey,
    ring,
    schemeTokens: opened.schemeTokens ?? NO_SCHEME_TOKENS,
    directory,
    trusted,
    authenticate,
    isKnownKey: knownIn(store),
    requestReply,
    clock,
    metrics,
    onUngranted,
    health,
    log,
    tracer: opened.tracer,
  }
  registry.collectProcess()
  const ops = await openOwnOps(health, { host: config.httpHost, port: portOf('gateway', config.metricsPort) })
  lifetime.onClose('metrics', ops.close)
  log.info({ opsPort: ops.port }, 'showing metrics')
  const app = await openServer(deps, { services: opened.services, document: DOCUMENT, prefix: '', tls })
  const { httpHost: host, httpPort } = config
  const place = { host, port: httpPort, setting: 'TOKENMILL_HTTP_PORT', giveUp: requestReply.giveUp }
  const port = await listen(app, place, { lifetime, log })
  return { port, opsPort: ops.port, deps }
}
