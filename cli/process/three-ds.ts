// Runs the 3-D Secure service, as a role or as a child of `start`. It is the only HTTP process that opens the vault. It
// needs no queue: it writes events to the store, and workers publish them.
import { openThreeDs, type ThreeDs } from '../../producers/gateway/three-ds/main.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openOutbound } from '../../src/outbound.ts'
import { startBeat } from '../../src/store/access/beat.ts'
import { openStore } from '../../src/store/pool.ts'
import { openKekMetrics } from '../../src/vault/kek/metrics.ts'
import { connectionsOf, poolsOf, warnOfConnections } from '../open/connections.ts'
import { watchKeks } from '../open/kek-watch.ts'
import { followKeys } from '../open/key-ring.ts'
import { openVault, type Session } from '../open/open.ts'
import { baseUrlOf } from '../open/register-client.ts'
import { readTls } from '../open/tls.ts'
import { openTracing } from '../open/tracing.ts'
import type { HttpRole } from './http-process.ts'

/** The time limit of each statement, in ms; only searches may take long. */
const STATEMENT_MS_MAX = 10_000
/** The most connections to one directory server. */
const DIRECTORY_CONNECTIONS = 256

export const THREE_DS: HttpRole = {
  name: 'three-ds',
  label: '3-D Secure',
  title: 'the 3-D Secure service',
  serve: serveThreeDs,
  greet: ({ config }, httpPort) => [`3-D Secure is at ${baseUrlOf({ ...config, httpPort })}/3ds-service.`],
}

/** Serves until the session ends. */
export async function serveThreeDs(session: Session): Promise<ThreeDs> {
  const { config, log, lifetime } = session
  const pools = poolsOf(session, 'three-ds')
  const { database, keks, lives, halves, ring } = await openVault(session, pools.beside)
  await followKeys({ ring, log, lifetime }, ['three-ds'])
  const tls = await readTls(config.tls)
  const store = openStore(database.url, {
    log,
    connectionsMax: pools.store,
    statementMsMax: STATEMENT_MS_MAX,
    application: 'tokenmill three-ds',
  })
  lifetime.onClose('store', () => store.close())
  await warnOfConnections(session, { store, embedded: database.embedded }, connectionsOf(session, 'three-ds'))
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: DIRECTORY_CONNECTIONS })
  lifetime.onClose('outgoing requests', () => outbound.close())
  const registry = openRegistry({ role: 'three-ds' })
  const provedKeks = await watchKeks({ store, keks, lives }, openKekMetrics(registry), session)
  const names = () => [...ring.names(), ...provedKeks()]
  const keyEpoch = () => lives.current()?.lives.epoch ?? null
  lifetime.onClose('beat', await startBeat({ store, log }, { role: 'three-ds', keys: names, keyEpoch }))
  const tracer = await openTracing(session, registry, { role: 'three-ds' })
  return openThreeDs({ config, log, registry, lifetime, store, halves, ring, outbound, tls, tracer })
}
