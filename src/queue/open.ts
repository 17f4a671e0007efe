// Opens the queues on either engine. All other code gets what this file opens, and knows only the interface.
import type { QueueOptions, Queues } from './engine.ts'
import { connectPostgres, type PgPoolLike } from './postgres.ts'
import { openQueues } from './queues.ts'
import { connectRedis } from './redis.ts'

/** One URL, or several of a Redis Cluster. Throws `ConfigError` for an unfit server, `Fault('queue_away')` for none. */
export async function openRedis(urls: string[], options: QueueOptions): Promise<Queues> {
  return openQueues(await connectRedis(urls, options), options)
}

/** `pool` serves the queues alone, with search_path=bullmq, keepAlive, and three connections per worker plus two. */
export async function openPostgres(pool: PgPoolLike, options: QueueOptions): Promise<Queues> {
  return openQueues(await connectPostgres(pool, options), options)
}
