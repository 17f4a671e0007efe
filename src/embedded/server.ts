// The embedded PostgreSQL of a data directory: attach to it if it runs, else start it; the last to leave stops it.
// It isn't a pool and isn't the store: it answers a URL.
//
// Each process holds a shared advisory lock on a connection that it keeps. To leave is to give that lock up and to try
// for it exclusively: whoever gets it is the last and stops the server while still holding it. So one that attaches
// meanwhile is refused the shared lock, waits until postmaster.pid is gone, and starts the server anew. A process that
// is killed loses its connection and with it its lock; the server stays for the next one.
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import type { Logger } from '../log.ts'
import { findBinaries } from './binaries.ts'
import { findPostmaster, initialise, isInitialised, type Postmaster, start, stop, USER } from './cluster.ts'
import { type ClusterLocation, findClusterLocation } from './cluster-location.ts'

export { discard } from './cluster-location.ts'

export interface Embedded {
  /** `postgresql://tokenmill:<password>@127.0.0.1:<port>/tokenmill`: a secret. */
  url: string
  /** Leaves; stops the server if nobody else is attached. Everything of ours on the server must be closed before. */
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
const ATTACH_MS_MAX = 180_000
const STARTS_MAX = 20
const PAUSE_MS = 100
const RETRY_MS = 2_000

/**
 * Attaches to the server of `dataDir`, making and starting what is absent. Throws `ConfigError` where this machine or
 * directory can't have one, `Fault('store_away')` where it doesn't come up (its server.log says why).
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

  // The server died under us. The pools of this process reconnect by themselves once it is back.
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

/** Gives the shared lock up; true where it was the last and is now held exclusively. */
async function isLast(client: Client): Promise<boolean> {
  try {
    await client.query({ text: 'select pg_advisory_unlock_shared($1)', values: [LOCK] })
    const { rows } = await client.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [LOCK])
    return rows[0]?.last === true
  } catch {
    // The server is gone or going: there is nothing left to stop.
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
      // One who is leaving still takes part in who is the last, but starts nothing any more.
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

/** A connection that holds the shared lock; undefined where the server is starting, stopping or somebody else's. */
async function join(location: ClusterLocation, { port }: Postmaster): Promise<Client | undefined> {
  // postmaster.pid is written line by line, the port last of what we read.
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
  // An error of the connection is followed by its end, which is what is listened to.
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
    // Not ready, or no longer: the caller looks again.
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
    // Made by another process since: duplicate_database, or the unique index of pg_database.
    const { code } = error as { code?: string }
    if (code !== '42P04' && code !== '23505') throw error
  }
}
