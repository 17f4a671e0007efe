// Opens every connection to the store's PostgreSQL. A connection goes to the host that takes writes, and is checked
// before it is used.
import pg from 'pg'
import { startTimeLimit } from '../../clock.ts'
import { ConfigError } from '../../config.ts'
import type { Logger } from '../../logger.ts'
import { type Finder, finderOf, type Watched } from './finder.ts'
import { PlacedClient } from './placed-client.ts'
import { readServerStateIfAllowed, type ServerState, Unfit } from './server-state.ts'
import { configureSession, refusalOf, type Settings } from './session.ts'

interface Opening {
  finder: Finder
  settings: Settings
}

interface PoolOptions {
  max: number
  /** The name of the connection in `pg_stat_activity`. */
  application: string
  settings?: Settings
  /** The log for the warning that two servers take writes. */
  log?: Logger
  driver?: Pick<pg.PoolConfig, 'types' | 'pipeline'>
}

/** How long a server may take to open a connection. */
const CONNECT_MS = 20_000
/** How long a statement waits for one of the pool's connections. On a busy machine they are in use: that isn't a server that is away. */
const POOL_MS = 60_000
const IDLE_MS = 60_000
/** After so long without a byte the system asks the server whether it is there, and within ten seconds gives it up. */
const KEEP_ALIVE_MS = 30_000

interface OpenedPool {
  pool: pg.Pool
  finder: Finder
}

const pools = new Set<pg.Pool>()

/** The most connections that all pools of this process may open together. */
export function countConnectionsMax(): number {
  for (const pool of pools) if (pool.ending) pools.delete(pool)
  return [...pools].reduce((sum, pool) => sum + pool.options.max, 0)
}

/** Opens a pool. Throws `ConfigError` for a URL that can't be read. */
export function openPool(url: string, options: PoolOptions): OpenedPool {
  const { max, application, settings = {}, log, driver = {} } = options
  const finder = finderOf(url)
  if (log) finder.log = log
  const pool = new pg.Pool({
    ...configOf(finder, { ...settings, application_name: application }),
    ...driver,
    max,
    connectionTimeoutMillis: POOL_MS,
    idleTimeoutMillis: IDLE_MS,
    // pg-pool passes these options to `Client`, though its types don't say so.
    Client: StoreClient as unknown as new () => pg.Client,
  })
  pools.add(pool)
  return { pool, finder }
}

/** Opens a single connection, for work that must stay on one. The caller ends it. */
export function openClient(url: string, application: string): pg.Client {
  return new StoreClient(configOf(finderOf(url), { application_name: application }))
}

function configOf(finder: Finder, settings: Settings): pg.ClientConfig & { opening: Opening } {
  return {
    connectionString: finder.address.url,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    opening: { finder, settings },
  }
}

class StoreClient extends PlacedClient implements Watched {
  standing: ServerState | undefined
  readonly #opening: Opening

  constructor(config: pg.ClientConfig & { opening: Opening }) {
    super(config, undefined)
    this.#opening = config.opening
  }

  override connect(): Promise<this>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const opened = this.#open()
    if (!callback) return opened
    opened.then(() => callback(undefined as unknown as Error), callback)
    return undefined
  }

  async #open(): Promise<this> {
    const { finder, settings } = this.#opening
    let endLimit = () => {}
    try {
      this.place(await finder.find())
      endLimit = startTimeLimit(CONNECT_MS, () => this.cut())
      await super.connect()
      this.once('error', finder.forget)
      this.once('end', () => finder.unwatch(this))
      await configureSession(this, settings, finder)
      await this.#stand(finder)
    } catch (error) {
      finder.forget()
      this.cut()
      const line = error instanceof ConfigError ? error.message : refusalOf(error)
      if (line === undefined) throw error
      // If this process has used the store before, the trouble may pass, so a fault is thrown instead of a
      // `ConfigError`.
      throw finder.proven ? new Unfit(line) : new ConfigError(line)
    } finally {
      endLimit()
    }
    finder.proven = true
    return this
  }

  /**
   * Compares the server's state with what this process has seen before: so a server that was left behind by a promotion
   * is refused.
   */
  async #stand(finder: Finder): Promise<void> {
    const standing = await readServerStateIfAllowed(this)
    if (!standing) return
    finder.admit(standing)
    this.standing = standing
    finder.watch(this)
  }
}
