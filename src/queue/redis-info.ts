// What Redis servers say about themselves by INFO, for the command that judges their settings. CONFIG isn't used:
// managed servers and strict ACLs forbid it. It opens its own connections, because the queues refuse an unfit server.
import { Redis } from 'ioredis'
import { Fault } from '../errors.ts'
import { withTimeout } from './bounded-call.ts'
import { credentialsOf, nodeOf } from './redis-url.ts'

export interface RedisInfo {
  /** `host:port`. */
  server: string
  /** Fields of INFO by their names. */
  fields: ReadonlyMap<string, string>
}

const CALL_MS = 1_000

/** The answer of each server in `urls`. Throws `Fault('queue_away')` if a server doesn't answer. */
export function readRedisInfo(urls: readonly string[]): Promise<RedisInfo[]> {
  return Promise.all(urls.map(url => readOne(url)))
}

async function readOne(url: string): Promise<RedisInfo> {
  const node = nodeOf(url)
  const redis = new Redis({
    ...credentialsOf(url),
    ...node,
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: CALL_MS,
    disableClientInfo: true,
    replyMapping: 'legacy',
  })
  // The rejection of the call reports the error.
  redis.on('error', () => {})
  try {
    await withTimeout(CALL_MS, redis.connect())
    const text = await withTimeout(CALL_MS, redis.info())
    const fields = [...text.matchAll(/^([a-z0-9_]+):(.*?)\r?$/gm)].map(
      ([, name = '', value = '']) => [name, value] as const,
    )
    return { server: `${node.host}:${node.port}`, fields: new Map(fields) }
  } catch (error) {
    throw new Fault('queue_away', error)
  } finally {
    redis.disconnect()
  }
}
