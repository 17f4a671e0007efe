// The embedded PostgreSQL of a data directory. A process attaches to the server, or starts it if it isn't running; the
// last process to leave stops it. The result is a URL; pool and store are made elsewhere.
//
// Each process holds a shared advisory lock on a connection that it keeps open. A process that leaves releases that
// lock and tries to take the lock exclusively. If it gets the exclusive lock, it is the last one, and it stops the
// server while it holds the lock. A process that attaches at that moment can't get the shared lock: it waits until
// postmaster.pid is gone and starts the server again. A killed process loses its connection and its lock; the server
// keeps running for the next process.
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { findBinaries } from './binaries.ts'
import { findPostmaster, initialise, isInitialised, type Postmaster, start, stop, USER } from './cluster.ts'
import { type ClusterLocation, findClusterLocation } from './cluster-location.ts'

export { discard } from './cluster-location.ts'

export interface Embedded {
  /** `postgresql://tokenmill:<password>@127.0.0.1:<port>/tokenmill`. The URL is a secret: it holds the password. */
  url: string
  /**
   * Leaves the server, and stops it if no other process is attached. Close every other connection of this process
   * before.
   */
  release(): Promise<void>
}

interface AttachOptions {
  log?: Logger
}

interface Hold {
  client: Client
  port: number
}

const DATABASE = 'tokenmill'
const LOCK = 1_953_327_468
/** After a crash the server reads up to 16 GB of WAL before it takes connections, some 66 MB a second on two cores. */
const ATTACH_MS_MAX = 600_000
const STARTS_MAX = 20
const PAUSE_MS = 100
const RETRY_MS = 2_000

/**
 * Attaches to the server of `dataDir`; makes the cluster and starts the server if need be. Throws `ConfigError` if this
 * machine or directory can't have one, and `Fault('store_away')` if the server doesn't come up (its server.log says
 * why).
 */
export async function attach(dataDir: string, options: AttachOptions = {}): Promise<Embedded> {
  const { log } = options
  const location = await findClusterLocation(dataDir)
  const leaving = new AbortController()
  let hold = await takeHold(location, log, leaving.signal)
  const { port } = hold
  let healing: Promise<void> | undefined
  watch()

  function watch(): void {
    hold.client.once('end', () => {
      if (!leaving.signal.aborted) healing = heal()
    })
  }

  // Called when the server died: starts it again. The pools of this process reconnect by themselves.
  async function heal(): Promise<void> {
    log?.warn({ port }, 'the embedded PostgreSQL went away; attaching again')
    while (!leaving.signal.aborted) {
      try {
        hold = await takeHold(location, log, leaving.signal)
        if (hold.port !== port) log?.error({ port, now: hold.port }, 'its port was taken; restart this process')
        return watch()
      } catch (error) {
        if (leaving.signal.aborted) return
        log?.error({ error }, 'the embedded PostgreSQL does not come back')
        await pause(RETRY_MS, undefined, { signal: leaving.signal }).catch(() => undefined)
      }
    }
  }

  async function leave(): Promise<void> {
    leaving.abort()
    await healing
    if (await isLast(hold.client)) {
      await stop(location, await findBinaries(location))
      log?.info({ port: hold.port }, 'embedded PostgreSQL stopped')
    }
    await hold.client.end().catch(() => undefined)
  }

  let left: Promise<void> | undefined
  return {
    url: `postgresql://${USER}:${location.password.reveal()}@127.0.0.1:${port}/${DATABASE}`,
    release: () => {
      left ??= leave()
      return left
    },
  }
}

/** Releases the shared lock. True if no other process held it: then this process holds the lock exclusively. */
async function isLast(client: Client): Promise<boolean> {
  try {
    await client.query({ text: 'select pg_advisory_unlock_shared($1)', values: [LOCK] })
    const { rows } = await client.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [LOCK])
    return rows[0]?.last === true
  } catch {
    // The server has ended or is ending, so there is nothing left to stop.
    return false
  }
}

async function takeHold(location: ClusterLocation, log: Logger | undefined, signal: AbortSignal): Promise<Hold> {
  const deadline = Date.now() + ATTACH_MS_MAX
  isInitialised(location)
  for (let starts = 0; starts < STARTS_MAX && Date.now() < deadline; ) {
    const postmaster = findPostmaster(location)
    const client = postmaster && (await join(location, postmaster))
    if (postmaster && client) return { client, port: postmaster.port }
    if (!postmaster) {
      // A process that is leaving may still join to find out whether it is the last, but it starts no server.
      signal.throwIfAborted()
      const binaries = await findBinaries(location)
      if (!isInitialised(location)) await initialise(location, binaries)
      if (await start(location, binaries)) {
        log?.info({ port: findPostmaster(location)?.port }, 'embedded PostgreSQL started')
        continue
      }
      starts++
    }
    await pause(PAUSE_MS)
  }
  throw new Fault('store_away', new Error(`the embedded PostgreSQL did not start; see ${location.serverLog}`))
}

/**
 * A connection that holds the shared lock; undefined if the server is starting, is stopping or belongs to somebody
 * else. Throws `ConfigError` if the server refuses the password.
 */
async function join(location: ClusterLocation, { port }: Postmaster): Promise<Client | undefined> {
  // PostgreSQL writes postmaster.pid line by line; of the lines that we read the port comes last.
  if (!(port > 0)) return undefined
  const client = new Client({
    host: '127.0.0.1',
    port,
    user: USER,
    password: location.password.reveal(),
    database: 'postgres',
    application_name: 'tokenmill attached',
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
  })
  // After an error the connection also emits `end`, which is handled.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ held: boolean | null }>(
      "select case when current_setting('data_directory') = $2 then pg_try_advisory_lock_shared($1) end as held",
      [LOCK, location.cluster],
    )
    if (rows[0]?.held) {
      await createDatabase(client)
      return client
    }
  } catch (error) {
    if ((error as { code?: string }).code === '28P01')
      throw new ConfigError(
        `TOKENMILL_DATA_DIR: the server of ${location.cluster} does not accept the password in postgresql.password; restore that file from a backup`,
      )
    // The server isn't ready yet, or is already stopping: the caller tries again.
  }
  await client.end().catch(() => undefined)
  return undefined
}

async function createDatabase(client: Client): Promise<void> {
  const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [DATABASE])
  if (rowCount) return
  try {
    await client.query(`create database ${DATABASE}`)
  } catch (error) {
    // Another process made the database meanwhile: duplicate_database, or a violation of pg_database's unique index.
    const { code } = error as { code?: string }
    if (code !== '42P04' && code !== '23505') throw error
  }
}
