// Runs the gateway, as a role or as a child of `start`: opens what it needs (no key-encryption key) and serves.
// producers/gateway has the interface itself.
import { type Gateway, openGateway } from '../../producers/gateway/main.ts'
import { gatewayServices } from '../../producers/gateway/services.ts'
import type { Notifications } from '../../producers/gateway/tokens/notifications.ts'
import { openSchemeView } from '../../producers/gateway/tokens/scheme-view.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOutbound } from '../../src/outbound.ts'
import { readNotification } from '../../src/scheme/notification.ts'
import { readSchemeFile } from '../../src/scheme/scheme-file.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import { poolsOf } from '../open/connections.ts'
import { openGatewayKeys } from '../open/gateway-keys.ts'
import { follow } from '../open/key-ring.ts'
import { openKeyless, openOwnQueues, type Session } from '../open/open.ts'
import { openPinnedKeys } from '../open/pinned-keys.ts'
import { baseUrlOf } from '../open/register-client.ts'
import { findReportFiles } from '../open/report-files.ts'
import { openTracing } from '../open/tracing.ts'
import type { HttpRole } from './http-process.ts'

/** The time limit of each statement, in ms. */
const STATEMENT_MS_MAX = 30_000
const ISSUER_CONNECTIONS = 2

export const GATEWAY: HttpRole = {
  name: 'gateway',
  label: 'gateway',
  title: 'the gateway',
  serve: serveGateway,
  greet({ config }, httpPort) {
    const address = baseUrlOf({ ...config, httpPort })
    return [`It serves ${address} (documentation: ${address.replace(/\/oidc$/, '/docs')}).`]
  },
}

/** Serves until the session ends. */
export async function serveGateway(session: Session): Promise<Gateway> {
  const { config, log, lifetime } = session
  const notifications = notificationsOf(config.schemeFile)
  const keyless = await openKeyless(session, {
    name: 'gateway',
    statementMsMax: STATEMENT_MS_MAX,
  })
  const { store, signingKey, tls } = keyless
  const ring = await openGatewayKeys(session, store)
  const trusted = await openPinnedKeys(session)
  follow({ ring, log, lifetime })
  const queues = await openOwnQueues(session, keyless, poolsOf(session, 'gateway').queues)
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: ISSUER_CONNECTIONS })
  lifetime.onClose('outgoing requests', () => outbound.close())
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'gateway', keys: ring.names }))
  const registry = openRegistry({ role: 'gateway' })
  const services = gatewayServices({ choices: config, reportFiles: findReportFiles(session), notifications })
  const tracer = await openTracing(session, registry, { role: 'gateway' })
  const opened = { config, log, registry, lifetime, store, queues, outbound, signingKey, ring, trusted, tls }
  return openGateway({
    ...opened,
    catalogue: CATALOGUE,
    schemeTokens: openSchemeView({ store, ring, log }),
    tracer,
    services,
  })
}

/** Reads a network's notifications with the keys of the scheme file. It makes no calls to the network. */
function notificationsOf(file: string | undefined): Notifications | undefined {
  const mdes = file === undefined ? undefined : readSchemeFile(file).mdes
  return mdes && { provider: 'mdes', read: (authorization, body) => readNotification(mdes, authorization, body) }
}
