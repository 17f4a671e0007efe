// Runs the gateway, as a role or as a child of `start`: opens what it needs (no key-encryption key) and serves.
// producers/gateway has the interface itself.
import type { Notifications } from '../../producers/gateway/deps.ts'
import { type FeatureTimes, type Gateway, openGateway } from '../../producers/gateway/main.ts'
import { ConfigError } from '../../src/config.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOutbound } from '../../src/outbound.ts'
import { readNotification } from '../../src/scheme/notification.ts'
import { readSchemeFile } from '../../src/scheme/scheme-file.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import * as logins from '../../src/store/access/logins.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore } from '../../src/store/pool.ts'
import { assertSchema } from '../../src/store/schema.ts'
import { openGatewayRing } from '../open/gateway/gateway-keys.ts'
import { follow } from '../open/key-ring.ts'
import { openDatabase, openQueues, type Session, tellOf } from '../open/open.ts'
import { findReportFiles } from '../open/report-files.ts'
import { readSystemKey } from '../open/system-clients.ts'
import { readTls } from '../open/tls.ts'
import { openTracing } from '../open/tracing.ts'
import { upgrade } from '../open/upgrade.ts'

const STORE_CONNECTIONS = 16
/** How many queues it listens to: its own results queue, and the one that all gateways share. */
const LISTENERS = 2
const ISSUER_CONNECTIONS = 2
const SEES_CARDS =
  'the database user of this gateway can read sealed cards; `tokenmill schema login gateway` makes one that can not'

/** Serves until the session ends. `featureTimes`: as in `openGateway`. */
export async function serveGateway(session: Session, featureTimes: FeatureTimes = {}): Promise<Gateway> {
  const { config, log, lifetime } = session
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config, database, tell: tellOf(session) })
  const tls = await readTls(config.tls)
  const signingKey = await readSystemKey(config.dataDir, 'gateway')
  const notifications = notificationsOf(config.schemeFile)
  const store = openStore(database.url, {
    log,
    connectionsMax: STORE_CONNECTIONS,
    role: 'tokenmill_gateway',
    statementMsMax: 30_000,
    application: 'tokenmill gateway',
  })
  lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  if (!database.embedded && (await logins.seesCards(store))) log.warn(SEES_CARDS)
  const known = await installation.find(store)
  if (!known)
    throw new ConfigError('DATABASE_URL: the upgrade of the database is incomplete; run `tokenmill schema upgrade`')
  const ring = await openGatewayRing(session, store)
  follow({ ring, log, lifetime })
  const queues = await openQueues(session, database, LISTENERS)
  if ((await queues.claimInstallation(known.installationId)) !== known.installationId)
    throw new ConfigError(
      'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
    )
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: ISSUER_CONNECTIONS })
  lifetime.onClose('outgoing requests', () => outbound.close())
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'gateway', keys: ring.names }))
  const registry = openRegistry({ role: 'gateway' })
  const reportFiles = findReportFiles(session)
  const tracer = await openTracing(session, registry, { role: 'gateway' })
  const opened = { config, log, registry, lifetime, store, queues, outbound, reportFiles, signingKey, ring, tls }
  return openGateway({ ...opened, notifications, tracer, featureTimes })
}

/** Reads a network's notifications with the keys of the scheme file. It makes no calls to the network. */
function notificationsOf(file: string | undefined): Notifications | undefined {
  const mdes = file === undefined ? undefined : readSchemeFile(file).mdes
  return mdes && { provider: 'mdes', read: (authorization, body) => readNotification(mdes, authorization, body) }
}
