// Opens what a command needs and closes it in reverse order: settings, the database (the operator's or the embedded
// one), the store, the keys, the queues. What the command does is decided elsewhere.
import { type Config, ConfigError, readConfig, storeMode } from '../../src/config.ts'
import { attach } from '../../src/embedded/server.ts'
import { type Lifetime, onSignal, openLifetime } from '../../src/lifetime.ts'
import { describeError, type Logger, openLog } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres, openRedis } from '../../src/queue/open.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { openQueuePool } from '../../src/store/queue-pool.ts'
import { assertSchema } from '../../src/store/schema.ts'
import { restrictTls } from '../../src/tls.ts'
import type { KeyProvider } from '../../src/vault/kek.ts'
import { type KeyRing, openKeyRing } from '../../src/vault/key-ring.ts'
import { EXIT } from '../exit.ts'
import type { Terminal } from '../terminal.ts'
import { findKek } from './kek.ts'
import { upgrade } from './upgrade.ts'

/** How long workers may take to finish the jobs in flight; after that their supervisor kills them. */
const CLOSE_MS_MAX = 35_000

/** The base of every command: settings, a log, and a lifetime for what is opened. */
export interface Session {
  config: Config
  terminal: Terminal
  log: Logger
  lifetime: Lifetime
  /** Each is opened at its first use, and only once. */
  opened: { database?: Promise<Database>; store?: Promise<OpenedStore>; vault?: Promise<OpenedVault> }
}

/** Opens a session. A command logs only errors unless a level is set; messages to its user are printed by `say`. */
export function openSession(terminal: Terminal, role = 'cli'): Session {
  restrictTls()
  const config = readConfig(terminal.env)
  const quiet = role === 'cli' && !terminal.env['TOKENMILL_LOG_LEVEL']
  const log = openLog(quiet ? 'error' : config.logLevel, { role })
  const onError = (name: string, error: unknown) => log.warn({ error: describeError(error) }, `${name} did not close`)
  return {
    config,
    terminal,
    log,
    lifetime: openLifetime({ onError, closeMsMax: role === 'cli' ? 15_000 : CLOSE_MS_MAX }),
    opened: {},
  }
}

/**
 * Runs a command that ends by itself. Everything that it opened is closed at its end or at the first Ctrl-C; a second
 * Ctrl-C ends the process at once.
 */
export async function withSession<T>(terminal: Terminal, work: (session: Session) => Promise<T>): Promise<T> {
  const session = openSession(terminal)
  let asked = false
  const interrupt = () => {
    if (asked) process.exit(EXIT.interrupted)
    asked = true
    session.lifetime.close().finally(() => process.exit(EXIT.interrupted))
  }
  const leave = onSignal(['SIGINT', 'SIGTERM', 'SIGHUP'], interrupt)
  try {
    return await work(session)
  } finally {
    await session.lifetime.close()
    leave()
  }
}

interface Database {
  /** The URL is a secret. */
  url: string
  embedded: boolean
}

const ALONE =
  'DATABASE_URL: only REDIS_URL is set, so this host has no token store (a pure producer); set DATABASE_URL, or TOKENMILL_EMBEDDED=1'

/** Opens the database. Throws `ConfigError` if the settings name none. */
export function openDatabase(session: Session): Promise<Database> {
  session.opened.database ??= reachDatabase(session)
  return session.opened.database
}

async function reachDatabase({ config, log, lifetime }: Session): Promise<Database> {
  if (config.databaseUrl) return { url: config.databaseUrl, embedded: false }
  if (storeMode(config) === 'none') throw new ConfigError(ALONE)
  const embedded = await attach(config.dataDir, { log })
  lifetime.onClose('embedded PostgreSQL', () => embedded.release())
  return { url: embedded.url, embedded: true }
}

interface OpenedStore {
  database: Database
  store: Store
}

/**
 * Opens the store with the schema of this release. The embedded store is upgraded; any other is refused if its schema
 * differs.
 */
export function openCommandStore(session: Session, connectionsMax = 4): Promise<OpenedStore> {
  session.opened.store ??= connectStore(session, connectionsMax)
  return session.opened.store
}

async function connectStore(session: Session, connectionsMax: number): Promise<OpenedStore> {
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config: session.config, database })
  const store = openStore(database.url, { log: session.log, connectionsMax, application: 'tokenmill cli' })
  session.lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  return { database, store }
}

export interface OpenedVault extends OpenedStore {
  installationId: string
  kek: KeyProvider
  ring: KeyRing
}

/** Opens the store and unwraps the vault's keys. Throws `ConfigError` if the key-encryption key isn't the store's. */
export function openVault(session: Session, connectionsMax?: number): Promise<OpenedVault> {
  session.opened.vault ??= unlock(session, connectionsMax)
  return session.opened.vault
}

async function unlock(session: Session, connectionsMax: number | undefined): Promise<OpenedVault> {
  const opened = await openCommandStore(session, connectionsMax)
  const known = await installation.find(opened.store)
  if (!known)
    throw new ConfigError('DATABASE_URL: the upgrade of the database is incomplete; run `tokenmill schema upgrade`')
  const kek = await findKek(session.config, opened.database.embedded, known)
  const ring = await openKeyRing(kek, await dataKeys.findAll(opened.store))
  return { ...opened, installationId: known.installationId, kek, ring }
}

/** How many connections the PostgreSQL engine needs: three per worker, and two for producers. */
function queueConnections(workers: number): number {
  return 3 * workers + 2
}

/** Opens the queues, on Redis or else in `database`. `workers`: how many queues this process listens to. */
export async function openQueues(session: Session, database: Database | undefined, workers = 0): Promise<Queues> {
  const { config, log, lifetime } = session
  const options = { prefix: config.prefix, lockMs: config.lockMs, log }
  if (config.redisUrls) {
    const queues = await openRedis(config.redisUrls, options)
    lifetime.onClose('queues', () => queues.close())
    return queues
  }
  if (!database) throw new ConfigError('REDIS_URL: must be set, because there is no database for the queues')
  const pool = openQueuePool(database.url, queueConnections(workers))
  lifetime.onClose('queue connections', () => pool.end())
  const queues = await openPostgres(pool, options)
  lifetime.onClose('queues', () => queues.close())
  return queues
}
