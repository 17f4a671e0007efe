// What the tests of queues share: queues on a suite's engine, and a handler that records its jobs.
import { Writable } from 'node:stream'
import pg from 'pg'
import { pino } from 'pino'
import type { Disposition, QueueOptions, Queues, ReceivedJob } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { upgradePostgres } from '../../src/queue/postgres.ts'
import type { Engine } from '../support/engines.ts'

export interface Opened {
  queues: Queues
  /** The pool behind them, on PostgreSQL. */
  pool: pg.Pool | undefined
  close(): Promise<void>
}

/** A log that keeps its lines. */
export function keptLog() {
  const lines: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  return { lines, log: pino({ level: 'info' }, stream) }
}

export async function openEngine(
  engine: Engine,
  options: Partial<QueueOptions> & { max?: number } = {},
): Promise<Opened> {
  const { max = 30, ...given } = options
  const settings = { prefix: engine.prefix, lockMs: 30_000, log: pino({ level: 'silent' }), ...given }
  if (engine.redisUrls) {
    const queues = await openRedis(engine.redisUrls, settings)
    return { queues, pool: undefined, close: () => queues.close() }
  }
  await upgrade(engine.databaseUrl)
  const pool = openPool(engine.databaseUrl, max)
  const queues = await openPostgres(pool, settings)
  return { queues, pool, close: () => queues.close().then(() => pool.end()) }
}

export function openPool(url: string, max = 10, more: pg.PoolConfig = {}): pg.Pool {
  return new pg.Pool({ connectionString: url, max, keepAlive: true, options: '-c search_path=bullmq', ...more })
}

export async function upgrade(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await upgradePostgres(client)
  await client.end()
}

/** A handler that keeps what it received and answers by `answer`. */
export function recorder(answer: (job: ReceivedJob) => Disposition | Promise<Disposition> = () => ({ done: true })) {
  const seen: ReceivedJob[] = []
  return {
    seen,
    ids: () => seen.map(job => job.id),
    handler: async (job: ReceivedJob): Promise<Disposition> => {
      seen.push(job)
      return answer(job)
    },
  }
}

/** A promise and the function that resolves it. */
export function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: resolve }
}
