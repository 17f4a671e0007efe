// Opens one process of the console: the sender of acts, and the server. At the end its lifetime closes what is opened here
// before what the caller opened. The process holds no key of the vault.

import { systemClock } from '../../src/clock.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { openHealth } from '../../src/health.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import type { MetricsRegistry } from '../../src/metrics.ts'
import { openOwnOps, portOf } from '../../src/ops.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as liveKeys from '../../src/store/access/live-keys.ts'
import * as challenges from '../../src/store/console/challenges.ts'
import * as openIdFlows from '../../src/store/console/openid-flows.ts'
import * as pendingActs from '../../src/store/console/pending-acts.ts'
import * as sessions from '../../src/store/console/sessions.ts'
import * as signingIn from '../../src/store/console/signing-in.ts'
import type { Store } from '../../src/store/pool.ts'
import * as storeServer from '../../src/store/server.ts'
import { listen, type Tls } from '../http/listen.ts'
import { watchOwnKey } from '../http/own-key.ts'
import type { SigningKeys } from '../signing-keys.ts'
import { openSender } from './act-sender.ts'
import type { ConsoleDeps } from './deps.ts'
import { openLive } from './live/live.ts'
import { openConsoleMetrics } from './metrics.ts'
import type { OpenIdProvider } from './openid-provider/provider.ts'
import { ROUTES } from './routes.ts'
import { openServer } from './server/server.ts'
import type { ConsoleSettings } from './settings.ts'
import { type Site, siteOf } from './site.ts'

export interface Opened {
  config: Pick<
    Config,
    'audience' | 'httpHost' | 'metricsPort' | 'scheduleLateMs' | 'receiptDays' | 'reportDays' | 'backupDays'
  >
  settings: Pick<ConsoleSettings, 'port' | 'origin' | 'environment'>
  installationId: string
  isEmbedded: boolean
  log: Logger
  registry: MetricsRegistry
  lifetime: Lifetime
  /** Uses the database role `tokenmill_console`. */
  store: Store
  answeredAt: () => number
  queues: Queues
  catalogue: Catalogue
  /** The key of the system client `console`. */
  signingKey: SigningKey
  trusted: Pick<SigningKeys, 'keys' | 'renew' | 'reasons'>
  tls: Tls | undefined
  /** Undefined: sign-in by OpenID isn't set up. */
  openid?: OpenIdProvider | undefined
}

export interface Console {
  port: number
  /** The port of its metrics. */
  opsPort: number
  site: Site
}

const SWEEP_MS = 60_000

/**
 * Opens the console and listens. Throws `PortInUse` if the port is in use, and `ConfigError` if the origin is wrong or all
 * passkeys are bound to another domain.
 */
export async function openConsole(opened: Opened): Promise<Console> {
  const { config, settings, log, registry, lifetime, store, queues, signingKey, trusted, tls } = opened
  const { clock, aheadMs, stop } = await storeServer.openStoreClock(store, systemClock, { log })
  lifetime.onClose('clock', stop)
  let site = siteOf(settings.origin ?? `http://localhost:${settings.port}`)
  if (await signingIn.areAllElsewhere(store, site.rpId))
    throw new ConfigError(
      `TOKENMILL_CONSOLE_ORIGIN: the passkeys that were enrolled are bound to another domain than ${site.rpId}; set the former origin, or end them with \`tokenmill person rp-changed\``,
    )
  const ownKey = await watchOwnKey(signingKey, { ask: () => liveKeys.isLive(store, signingKey), log })
  lifetime.onClose('own key', ownKey.stop)
  const isKeyLive = ownKey.isLive
  const sender = openSender({ queues, signingKey, isKeyLive, trusted, audience: config.audience, clock, log })
  lifetime.onClose('acts', sender.close)
  await sender.ready
  const live = openLive({ store, isEmbedded: opened.isEmbedded, clock, log })
  const deps: ConsoleDeps = {
    name: config.audience,
    environment: settings.environment ?? (opened.isEmbedded ? 'LOCAL' : undefined),
    installationId: opened.installationId,
    kept: config,
    isEmbedded: opened.isEmbedded,
    scheduleLateMs: config.scheduleLateMs,
    site: () => site,
    store,
    answeredAt: opened.answeredAt,
    sendAct: sender.send,
    catalogue: opened.catalogue,
    queues,
    openid: opened.openid,
    live,
    clock,
    metrics: openConsoleMetrics(registry),
    log,
  }
  const health = openHealth(registry, {
    store: storeServer.watched(store),
    queue: queues,
    clock: { aheadMs },
    others: async () => [...(await ownKey.reasons()), ...trusted.reasons()],
  })
  registry.collectProcess()
  const ops = await openOwnOps(health, { host: config.httpHost, port: portOf('console', config.metricsPort) })
  lifetime.onClose('metrics', ops.close)
  log.info({ opsPort: ops.port }, 'showing metrics')
  const issuer = opened.openid?.issuer ?? null
  // Where OpenID was turned off, or is of another provider now, the sessions of the former one are over.
  await sessions.revokeOfOthers(store, issuer)
  lifetime.onClose(
    'sweep',
    every(SWEEP_MS, () => sweep(store, issuer), { log }),
  )
  // A certificate that is set for the gateway isn't used under an origin without https.
  const app = await openServer(deps, ROUTES, site.isSecure ? tls : undefined)
  const place = { host: config.httpHost, port: settings.port, setting: 'TOKENMILL_CONSOLE_PORT' }
  const port = await listen(app, place, { lifetime, log })
  // A stream would keep the server from ending.
  lifetime.onClose('live pages', live.close)
  // The real number of port 0 is known only now.
  if (settings.origin === undefined) site = siteOf(`http://localhost:${port}`)
  return { port, opsPort: ops.port, site }
}

/** Removes what is over. */
async function sweep(store: Store, issuer: string | null): Promise<void> {
  await sessions.revokeOfOthers(store, issuer)
  await sessions.removeOver(store)
  await challenges.removeOver(store)
  await openIdFlows.removeOver(store)
  await pendingActs.removeOver(store)
}
