// Opens what a command needs and closes it in reverse order: settings, the database (the operator's or the embedded
// one), the store, the keys, the queues. What the command does is decided elsewhere.
import { setTimeout as pause } from 'node:timers/promises'
import type { Tls } from '../../producers/http/listen.ts'
import { systemClock } from '../../src/clock.ts'
import { type Config, ConfigError, readConfig, storeMode } from '../../src/config.ts'
import { attach } from '../../src/embedded/server.ts'
import { Fault } from '../../src/errors.ts'
import { clockReasons } from '../../src/health.ts'
import type { SigningKey } from '../../src/job/envelope/envelope.ts'
import { type Lifetime, onSignal, openLifetime } from '../../src/lifetime.ts'
import { openLog } from '../../src/log.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import * as logins from '../../src/store/access/logins.ts'
import { queueConnections } from '../../src/store/connection/plan.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { openQueuePool } from '../../src/store/queue-pool.ts'
import { assertSchema } from '../../src/store/schema.ts'
import { measureSkew } from '../../src/store/server.ts'
import { restrictTls } from '../../src/tls.ts'
import type { HostKeks } from '../../src/vault/kek/host.ts'
import { openPrivateHalves, type PrivateHalves } from '../../src/vault/private-half.ts'
import { type LiveRing, openLiveRing } from '../../src/vault/ring/key-ring.ts'
import { type KnownLives, LIVES_TROUBLE } from '../../src/vault/ring/known-lives.ts'
import { EXIT } from '../exit.ts'
import { say, type Terminal } from '../terminal.ts'
import { connectionsOf, poolsOf, warnOfConnections } from './connections.ts'
import { findKeks, KekAway } from './kek.ts'
import { ringSource, unopenedTo } from './key-ring.ts'
import { lastingLives } from './known-lives.ts'
import { readSystemKey } from './system-clients.ts'
import { readTls } from './tls.ts'
import { upgrade } from './upgrade.ts'

/** How long workers may take to finish the jobs in flight; after that their supervisor kills them. */
const CLOSE_MS_MAX = 35_000

/** The base of every command: settings, a log, and a lifetime for what is opened. */
export interface Session {
  config: Config
  terminal: Terminal
  log: Logger
  lifetime: Lifetime
  /** `cli`, or the role as which this process runs. */
  role: string
  /** A role that runs long waits for a key-encryption key that is away; a command ends. */
  waitsForKek: boolean
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
    role,
    waitsForKek: role !== 'cli',
    opened: {},
  }
}

/**
 * Runs a command that ends without a signal. Everything that it opened is closed at its end or at the first Ctrl-C; a
 * second Ctrl-C ends the process at once.
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

export interface Database {
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

/** A command says it to its user; a role logs it. */
export function tellOf({ role, terminal, log }: Session): (line: string) => void {
  return role === 'cli' ? line => say(terminal, line) : line => log.info(line)
}

interface OpenedStore {
  database: Database
  store: Store
}

/**
 * Opens the store with the schema of this release. The embedded store is upgraded; any other is refused if its schema
 * differs.
 */
export function openCommandStore(
  session: Session,
  connectionsMax = poolsOf(session, 'command').store,
): Promise<OpenedStore> {
  session.opened.store ??= connectStore(session, connectionsMax)
  return session.opened.store
}

async function connectStore(session: Session, connectionsMax: number): Promise<OpenedStore> {
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config: session.config, database, tell: tellOf(session) })
  const store = openStore(database.url, { log: session.log, connectionsMax, application: `tokenmill ${session.role}` })
  session.lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  if (session.role === 'cli') await warnOfClock(session, store)
  return { database, store }
}

/** What a command signs, and the times that it judges, are wrong on a host whose clock is. */
async function warnOfClock({ terminal }: Session, store: Store): Promise<void> {
  const aheadMs = (await measureSkew(store, systemClock).catch(() => undefined)) ?? 0
  for (const reason of clockReasons(aheadMs))
    say(terminal, `tokenmill: ${reason}: what this host signs may be refused, and times be judged wrongly. Correct NTP`)
}

export interface OpenedVault extends OpenedStore {
  installationId: string
  keks: HostKeks
  /** The lives of the data keys, by which the ring goes. */
  lives: KnownLives
  ring: LiveRing
  /** Private halves of capture keys and signing keys. */
  halves: PrivateHalves
}

/** Opens the store and unwraps the vault's keys. Throws `ConfigError` if the key-encryption key isn't the store's. */
export function openVault(session: Session, connectionsMax?: number): Promise<OpenedVault> {
  session.opened.vault ??= unlock(session, connectionsMax)
  return session.opened.vault
}

async function unlock(session: Session, connectionsMax: number | undefined): Promise<OpenedVault> {
  const opened = await openCommandStore(session, connectionsMax)
  const keys = await awaitKeys(session, opened)
  return { ...opened, ...keys, halves: openPrivateHalves(keys.ring) }
}

const KEK_RETRY_MS = 5_000

type OpenedKeys = Pick<OpenedVault, 'installationId' | 'keks' | 'lives' | 'ring'>

async function awaitKeys(session: Session, opened: OpenedStore): Promise<OpenedKeys> {
  for (;;) {
    try {
      return await openKeys(session, opened)
    } catch (error) {
      const isAway = error instanceof KekAway || (error instanceof Fault && error.code === 'kek_away')
      if (!isAway || !session.waitsForKek) throw error
      session.log.warn({ reason: error.message }, 'waiting for the key-encryption key')
      await pause(KEK_RETRY_MS)
    }
  }
}

/**
 * Reads the installation's row at each call: while a process waits for a key that is away, another key may replace that
 * key.
 */
async function openKeys({ config, log }: Session, { store, database }: OpenedStore): Promise<OpenedKeys> {
  const known = await installation.get(store)
  const keks = await findKeks(config, database.embedded, known)
  const { installationId } = known
  const lives = lastingLives({ store, keks, installationId }, config.dataDir, log)
  await lives.read().catch(error => {
    const trouble = lives.trouble()
    if (trouble === undefined) throw error
    throw new ConfigError(`DATABASE_URL: ${LIVES_TROUBLE[trouble]}; see "When lives went back" in docs/keys.md`)
  })
  const ring = await openLiveRing(keks, ringSource(store, lives), unopenedTo(log))
  return { installationId, keks, lives, ring }
}

/**
 * Opens the queues, on Redis or else in `database`. `connectionsMax`: those of the pool in `database`; by default they
 * suffice for a process that takes no jobs.
 */
export async function openQueues(
  session: Session,
  database: Database | undefined,
  connectionsMax = queueConnections(0),
): Promise<Queues> {
  const { config, log, lifetime } = session
  const options = { prefix: config.prefix, lockMs: config.lockMs, log }
  if (config.redisUrls) {
    const queues = await openRedis(config.redisUrls, options)
    lifetime.onClose('queues', () => queues.close())
    return queues
  }
  if (!database) throw new ConfigError('REDIS_URL: must be set, because there is no database for the queues')
  const pool = openQueuePool(database.url, connectionsMax)
  lifetime.onClose('queue connections', () => pool.end())
  const queues = await openPostgres(pool, options)
  lifetime.onClose('queues', () => queues.close())
  return queues
}

/** Opens the queues as `openQueues` does. Throws `ConfigError` if they belong to another installation. */
export async function openOwnQueues(
  session: Session,
  { database, installationId }: { database: Database; installationId: string },
  connectionsMax: number,
): Promise<Queues> {
  const queues = await openQueues(session, database, connectionsMax)
  if ((await queues.claimInstallation(installationId)) !== installationId)
    throw new ConfigError(
      'REDIS_URL: these queues belong to another installation; give this one its own Redis or TOKENMILL_PREFIX',
    )
  return queues
}

/** Connects to the queues for `work` only. */
export async function withQueues<T>(session: Session, work: (queues: Queues) => Promise<T>): Promise<T> {
  const { config, log } = session
  const lifetime = openLifetime({
    onError: (name, error) => log.warn({ error: describeError(error) }, `${name} did not close`),
  })
  try {
    const database = config.redisUrls ? undefined : await openDatabase(session)
    return await work(await openQueues({ ...session, lifetime }, database))
  } finally {
    await lifetime.close()
  }
}

/** An HTTP role that works with a database role of its own and holds no key-encryption key. */
export interface KeylessRole {
  name: 'gateway' | 'console'
  /** The time limit of each statement, in ms. */
  statementMsMax: number
}

export interface OpenedKeyless extends OpenedStore {
  installationId: string
  signingKey: SigningKey
  tls: Tls | undefined
}

/**
 * Opens what such a role begins with: its certificate, its signing key, and the store as its database role. It warns of a
 * database user who can read sealed cards. Throws `ConfigError` if the certificate, the key's file, or the schema isn't
 * what this release needs.
 */
export async function openKeyless(session: Session, role: KeylessRole): Promise<OpenedKeyless> {
  const { config, log, lifetime } = session
  const { name, statementMsMax } = role
  const database = await openDatabase(session)
  if (database.embedded) await upgrade({ config, database, tell: tellOf(session) })
  const tls = await readTls(config.tls)
  const signingKey = await readSystemKey(config.dataDir, name)
  const store = openStore(database.url, {
    log,
    connectionsMax: poolsOf(session, name).store,
    role: `tokenmill_${name}`,
    statementMsMax,
    application: `tokenmill ${name}`,
  })
  lifetime.onClose('store', () => store.close())
  await assertSchema(store)
  if (!database.embedded && (await logins.seesCards(store)))
    log.warn(
      `the database user of this ${name} can read sealed cards; \`tokenmill schema login ${name}\` makes one that can not`,
    )
  await warnOfConnections(session, { store, embedded: database.embedded }, connectionsOf(session, name))
  const { installationId } = await installation.get(store)
  return { database, store, installationId, signingKey, tls }
}
