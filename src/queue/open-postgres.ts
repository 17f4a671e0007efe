// Opens the queues on PostgreSQL. Other code knows only the interface (engine.ts).
import type { QueueOptions, Queues } from './engine.ts'
import { connectPostgres, type PgPoolLike } from './postgres.ts'
import { openQueues } from './queues.ts'

/**
 * `pool` is for the queues alone: search_path=bullmq, keepAlive, and three connections per worker plus three, or two
 * without workers.
 */
export async function openPostgres(pool: PgPoolLike, options: QueueOptions): Promise<Queues> {
  return openQueues(await connectPostgres(pool, options), options)
}
