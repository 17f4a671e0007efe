// Opens the queues on either engine. Everybody else is handed what it opened, and knows the interface alone.
import type { QueueOptions, Queues } from './engine.ts'
import { connectPostgres, type PgPoolLike } from './postgres.ts'
import { openQueues } from './queues.ts'
import { connectRedis } from './redis.ts'

/** One URL, or several of a Redis Cluster. Throws `ConfigError` for a server that isn't fit, `Fault('queue_away')` for none. */
export async function openRedis(urls: string[], options: QueueOptions): Promise<Queues> {
  return openQueues(await connectRedis(urls, options), options)
}

/** `pool` is for queues alone, with search_path=bullmq on its connections, keepAlive, and three connections per worker and two more. */
export async function openPostgres(pool: PgPoolLike, options: QueueOptions): Promise<Queues> {
  return openQueues(await connectPostgres(pool, options), options)
}
