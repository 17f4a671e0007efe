// Runs the 3-D Secure service, as a role or as a child of `start`. It is the only HTTP process that opens the vault. It
// needs no queue: it writes events to the store, and workers publish them.
import { openThreeDs, type ThreeDs } from '../../producers/gateway/three-ds/main.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOutbound } from '../../src/outbound.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import { openStore } from '../../src/store/pool.ts'
import { openKey } from '../../src/vault/key-ring.ts'
import { openVault, type Session } from '../open/open.ts'
import { readTls } from '../open/tls.ts'
import { openTracing } from '../open/tracing.ts'

const STORE_CONNECTIONS = 16
/** The time limit of a search, in ms; every other statement finds its row by a key. */
const STATEMENT_MS_MAX = 10_000
/** The most connections to one directory server. */
const DIRECTORY_CONNECTIONS = 256

/** Serves until the session ends. */
export async function serveThreeDs(session: Session): Promise<ThreeDs> {
  const { config, log, lifetime } = session
  const { database, store: keys, kek, ring } = await openVault(session)
  const tls = await readTls(config.tls)
  const apiKeyKey = await openKey(kek, await dataKeys.findAll(keys), 'api-key')
  const store = openStore(database.url, {
    log,
    connectionsMax: STORE_CONNECTIONS,
    statementMsMax: STATEMENT_MS_MAX,
    application: 'tokenmill three-ds',
  })
  lifetime.onClose('store', () => store.close())
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: DIRECTORY_CONNECTIONS })
  lifetime.onClose('outgoing requests', () => outbound.close())
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'three-ds' }))
  const registry = openRegistry({ role: 'three-ds' })
  const tracer = await openTracing(session, registry, { role: 'three-ds' })
  return openThreeDs({ config, log, registry, lifetime, store, kek, ring, outbound, apiKeyKey, tls, tracer })
}
