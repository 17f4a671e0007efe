// Opens the queues on either engine. Other code knows only the interface (engine.ts).
import type { QueueOptions, Queues } from './engine.ts'
import { connectPostgres, type PgPoolLike } from './postgres.ts'
import { openQueues } from './queues.ts'
import { connectRedis } from './redis.ts'

/**
 * Opens the queues on Redis. `urls`: one URL, or several of a Redis Cluster. Throws `ConfigError` if the server is
 * unfit, `Fault('queue_away')` if none answers.
 */
export async function openRedis(urls: string[], options: QueueOptions): Promise<Queues> {
  return openQueues(await connectRedis(urls, options), options)
}

/**
 * Opens the queues on PostgreSQL. `pool` is for the queues alone: search_path=bullmq, keepAlive, and three connections
 * per worker plus three, or two without workers.
 */
export async function openPostgres(pool: PgPoolLike, options: QueueOptions): Promise<Queues> {
  return openQueues(await connectPostgres(pool, options), options)
}
