// BullMQ's PostgreSQL backend on a pool that the caller owns. It imports no PostgreSQL driver, and uses no table of
// tokenmill.
import {
  type BackendFactory,
  createPostgresBackend,
  type IQueueBackend,
  LATEST_SCHEMA_VERSION,
  runMigrations,
} from 'bullmq'
import { ConfigError } from '../config.ts'
import type { EngineBackend } from './backend.ts'
import { toQueueFault, withTimeout } from './bounded-call.ts'
import { STALLED_MAX } from './damage.ts'
import type { JobState, QueueOptions } from './engine.ts'
import { addByOneStatement } from './put-rows.ts'
import { shareListening } from './shared-listen.ts'

const CALL_MS = 15_000
/**
 * The most connections that a worker holds at once: one by whose name others see it, one for fetching, one for
 * finishing and renewing.
 */
const CLIENTS_PER_WORKER = 3
/** One listens for all workers, two are the producers'. */
const OTHER_CLIENTS = 3
/** PostgreSQL truncates an application_name to this length. */
const NAME_BYTES = 63

const ORDERS: Record<JobState, string> = {
  waiting: 'priority, seq',
  active: 'seq',
  delayed: 'process_at_ms, seq',
  failed: 'finished_at_ms, seq',
}

interface Row {
  id: string
  data: unknown
  timestamp: number
  reason: string | null
}

interface PgQueryable {
  query(text: string, params?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface PgPoolLike extends PgQueryable {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  options: { max?: number | undefined; keepAlive?: boolean | undefined }
}

/**
 * Migrates the schema `bullmq` to the version that this BullMQ needs. `client` is one connection, not a pool: the steps
 * share a transaction.
 */
export async function upgradePostgres(client: PgQueryable): Promise<void> {
  await runMigrations(client as Parameters<typeof runMigrations>[0], 'bullmq')
  await vacuumOften(client)
}

/**
 * Lets PostgreSQL vacuum the table of jobs early, unless an operator has set that. By default it vacuums when a fifth
 * of the rows are dead, which is late while many jobs wait: each job leaves four dead rows. Running queues go on
 * meanwhile.
 */
async function vacuumOften(client: PgQueryable): Promise<void> {
  const [job] = await ask<{ options: string[] | null }>(
    client,
    `select reloptions as options from pg_class where oid = 'bullmq.job'::regclass`,
  )
  if (job?.options?.some(option => option.startsWith('autovacuum_vacuum_scale_factor'))) return
  await client.query('alter table bullmq.job set (autovacuum_vacuum_scale_factor = 0.01)')
}

export async function connectPostgres(pool: PgPoolLike, options: QueueOptions): Promise<EngineBackend> {
  const { log } = options
  const troubles: (() => void)[] = []
  pool.on('error', error => {
    log.warn({ err: error }, 'an idle queue connection was lost')
    for (const listener of troubles) listener()
  })
  await withTimeout(CALL_MS, assertSchema(pool)).catch(error => {
    throw toQueueFault(error)
  })

  // BullMQ adds a listener per queue to the pool and never removes it, so it gets a pool whose `on` does nothing.
  const quiet = {
    ...bound(pool),
    connect: shareListening(() => pool.connect()),
    options: pool.options,
    on: () => quiet,
    removeAllListeners: () => quiet,
  }
  const openBackend: BackendFactory<IQueueBackend, object> = (name, bullOptions, more) => {
    const opened = createPostgresBackend(name, bullOptions as never, more)
    addByOneStatement(opened, name, (text, values) => pool.query(text, values))
    return opened
  }
  const access = { connection: quiet, backend: openBackend }
  let workers = 0

  return {
    engine: 'postgres',
    prefix: options.prefix,
    idleSeconds: 5,
    producer: () => access,
    consumer: () => access,
    admit() {
      const clientsMax = pool.options.max ?? 10
      const needed = (workers + 1) * CLIENTS_PER_WORKER + OTHER_CLIENTS
      if (needed > clientsMax) {
        throw new ConfigError(`the queue pool has ${clientsMax} connections, but ${workers + 1} workers need ${needed}`)
      }
      workers += 1
    },
    dismiss() {
      workers -= 1
    },
    async has(queue, id) {
      const rows = await ask<{ n: number }>(pool, 'select 1 as n from bullmq.job where queue = $1 and id = $2', [
        queue,
        id,
      ])
      return rows.length > 0
    },
    // BullMQ lists waiting and active jobs newest first, whatever order is requested.
    async list(queue, state, start, end) {
      const sql = `select id, data, added_at_ms::float8 as timestamp, failed_reason as reason from bullmq.job
        where queue = $1 and state = $2 order by ${ORDERS[state]} offset $3 limit $4`
      const rows = await ask<Row>(pool, sql, [queue, state, start, end - start + 1])
      return rows.map(({ reason, ...job }) => ({ ...job, ...(reason !== null && { failedReason: reason }) }))
    },
    async workersOf(queues) {
      const nameOf = (queue: string) => Buffer.from(queue).subarray(0, NAME_BYTES).toString()
      const sql = `select application_name as name, count(*)::int as n from pg_stat_activity
        where datname = current_database() and application_name = any($1::text[]) group by 1`
      const rows = await ask<{ name: string; n: number }>(pool, sql, [queues.map(nameOf)])
      const found = new Map(rows.map(({ name, n }) => [name, n]))
      return new Map(queues.map(queue => [queue, found.get(nameOf(queue)) ?? 0]))
    },
    // A parent would be in the same schema, which the same user can write anyway, so detaching protects nothing.
    sever: async () => {},
    // The columns are typed, so only a counter at its maximum can be damaged. One such job blocks the whole queue,
    // because the statement that fetches the next job fails on it: the job is removed at once.
    async discardDamaged(queue) {
      const sql = `delete from bullmq.job where queue = $1 and finished_at_ms is null
        and greatest(attempts_made, attempts_started, stalled_count) >= 2147483647 returning 1 as n`
      return (await ask<{ n: number }>(pool, sql, [queue])).length
    },
    async discard(queue, id) {
      // Another job may have got this id since the damaged one was removed: that one stays.
      const sql = `delete from bullmq.job where queue = $1 and id = $2
        and greatest(attempts_made, attempts_started, stalled_count) >= 2147483647 returning 1 as n`
      return (await ask<{ n: number }>(pool, sql, [queue, id])).length > 0
    },
    // One statement, because BullMQ's own reads a job's lock before it moves the job. The job keeps its place in the
    // queue: a batch waits for its oldest chunk.
    async endLocks(queue, prefix) {
      const sql = `with handed_back as (
          update bullmq.job
          set state = 'waiting', lock_token = null, locked_until_ms = null, stalled_marked = false,
            stalled_count = stalled_count + 1,
            deferred_failure = case when stalled_count >= $3 then 'stalled' else deferred_failure end
          where queue = $1 and state = 'active' and starts_with(lock_token, $2) and stalled_count < 2147483647
          returning 1
        ), wake as (select pg_notify('bullmq_jobs', $1) where exists (select from handed_back))
        select count(*)::int as n, (select count(*) from wake) from handed_back`
      const [row] = await ask<{ n: number }>(pool, sql, [queue, prefix, STALLED_MAX])
      return { handedBack: row?.n ?? 0, counted: [] }
    },
    // The store is in the same PostgreSQL and holds the installation's id.
    claim: async id => id,
    setNotice: async () => {},
    notice: async () => ({ text: undefined, permitted: true }),
    ping: async () => {
      await withTimeout(CALL_MS, pool.query('select 1'))
    },
    async probe() {
      await withTimeout(CALL_MS, assertWritable(pool))
    },
    onTrouble: listener => troubles.push(listener),
    close: async () => {},
  }
}

function bound(pool: PgPoolLike) {
  return {
    query: (text: string, params?: unknown[]) => pool.query(text, params),
    end: () => pool.end(),
  }
}

async function ask<R>(pool: PgQueryable, text: string, values: unknown[] = []): Promise<R[]> {
  return (await pool.query(text, values)).rows as R[]
}

/** Throws as PostgreSQL does where it takes no writes. */
async function assertWritable(pool: PgPoolLike): Promise<void> {
  const [row] = await ask<{ readonly: string }>(pool, `select current_setting('transaction_read_only') as readonly`)
  if (row?.readonly !== 'off') throw Object.assign(new Error('transaction_read_only is on'), { code: '25006' })
}

async function assertSchema(pool: PgPoolLike): Promise<void> {
  const state = await ask<{ path: string; there: boolean }>(
    pool,
    `select current_setting('search_path') as path, to_regclass('bullmq.migration') is not null as there`,
  )
  if (!/^"?bullmq"?(,|$)/.test(state[0]?.path ?? '')) {
    throw new ConfigError('the queue pool needs connections with search_path=bullmq')
  }
  const versions = state[0]?.there
    ? await ask<{ version: number }>(pool, 'select coalesce(max(version), 0)::int as version from bullmq.migration')
    : []
  const version = versions[0]?.version ?? 0
  if (version < LATEST_SCHEMA_VERSION) {
    throw new ConfigError(
      `DATABASE_URL: the queue schema has version ${version}, this release needs ${LATEST_SCHEMA_VERSION}; run \`tokenmill schema upgrade\``,
    )
  }
  if (version > LATEST_SCHEMA_VERSION) {
    throw new ConfigError(
      `DATABASE_URL: the queue schema has version ${version}, newer than this release's ${LATEST_SCHEMA_VERSION}; deploy the release that upgraded it`,
    )
  }
}
