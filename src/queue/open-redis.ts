// Opens the queues on Redis. Other code knows only the interface (engine.ts).
import type { QueueOptions, Queues } from './engine.ts'
import { openQueues } from './queues.ts'
import { connectRedis } from './redis.ts'

/**
 * `urls`: one URL, or several of a Redis Cluster. Throws `ConfigError` if the server is unfit, `Fault('queue_away')` if
 * none answers.
 */
export async function openRedis(urls: string[], options: QueueOptions): Promise<Queues> {
  return openQueues(await connectRedis(urls, options), options)
}
