// Redis, one server or a cluster: opens the connections and refuses a server that may evict keys. While the server is
// away, calls of producers fail within seconds and workers wait; so the two have separate connections.
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { causeOf } from '../server-error.ts'
import type { EngineBackend, LockedJob } from './backend.ts'
import { toQueueFault, withTimeout } from './bounded-call.ts'
import { STALLED_MAX } from './damage.ts'
import type { QueueOptions } from './engine.ts'
import { discardDamaged, discardUnfinishable } from './redis-damage.ts'
import { credentialsOf, nodeOf } from './redis-url.ts'

const CALL_MS = 5_000
const RETRY_MS_MAX = 2_000
/** How often a connection to a replica is opened anew, in ms: the address may lead to the primary by then. */
const REPLICA_MS = 2_000
/** How long the small write stays that tries whether the server takes any, in ms. */
const PROBE_MS = 10_000
/** How long the server may take to say why it can't be used, in ms. */
const REFUSAL_MS = 1_000
const PROBE = "return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])"

type Client = Redis | Cluster
type ClusterRedisOptions = NonNullable<ClusterOptions['redisOptions']> & { replyMapping: 'legacy' }

/** The pause before a reconnect, in ms: it doubles up to a maximum, and attempts never end. */
const retryStrategy = (times: number) => Math.min(50 * 2 ** Math.min(times, 10), RETRY_MS_MAX) + Math.random() * 100

const COMMON: RedisOptions = {
  connectTimeout: CALL_MS,
  keepAlive: 30_000,
  retryStrategy,
  disableClientInfo: true,
  // The primary has become a replica: reconnect, and send the command again.
  reconnectOnError: error => (isReadOnly(error) ? 2 : false),
}
const PRODUCER: RedisOptions = {
  ...COMMON,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  commandTimeout: CALL_MS,
  socketTimeout: 2 * CALL_MS,
  // The caller gets the answer at once: a replica that stays one would be asked again until the call's time is over.
  reconnectOnError: atMostEvery(REPLICA_MS, isReadOnly),
}
// A blocking fetch lasts up to 10 s, so a socket that is silent for three times as long counts as dead.
const CONSUMER: RedisOptions = {
  ...COMMON,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  socketTimeout: 30_000,
}

/**
 * Counts a stall of each job in work whose lock token begins with a prefix, as BullMQ does once a lock has run out, and
 * returns ids and tokens. It counts only under the lock: a counter that is written after the job was finished would be
 * a job without data, which keeps the id. A job whose counter is damaged is left to redis-damage.ts.
 */
const COUNT_STALLS = `
  local counted = {}
  for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    local key = ARGV[1] .. id
    local token = redis.call('GET', key .. ':lock')
    if token and string.sub(token, 1, #ARGV[2]) == ARGV[2] and redis.call('EXISTS', key) == 1 then
      local stalled = redis.pcall('HINCRBY', key, 'stc', 1)
      if type(stalled) == 'number' then
        if stalled > tonumber(ARGV[3]) then redis.call('HSET', key, 'defa', 'stalled') end
        table.insert(counted, { id, token })
      end
    end
  end
  return counted`

export async function connectRedis(urls: string[], options: QueueOptions): Promise<EngineBackend> {
  const { log, prefix } = options
  const cluster = await survey(urls)
  if (cluster && !hasHashTag(prefix)) {
    throw new ConfigError('TOKENMILL_PREFIX: a Redis Cluster needs a hash tag in it, such as {tokenmill}')
  }
  const open = (role: RedisOptions) => connect(urls, role, cluster)
  const producer = open(PRODUCER)
  producer.on('error', error => log.debug({ err: error }, 'queue connection'))
  try {
    await withTimeout(CALL_MS, untilReady(producer))
    for (const node of producer instanceof Cluster ? producer.nodes('master') : [producer]) await assertFit(node, log)
  } catch (error) {
    producer.disconnect()
    throw toQueueFault(causeOf(error) ? error : ((await readRefusal(urls)) ?? error))
  }
  let consumer: Client | undefined
  const keyOf = (queue: string, id: string) => `${prefix}:${queue}:${id}`

  return {
    engine: 'redis',
    prefix,
    idleSeconds: 1,
    producer: () => ({ connection: producer }),
    consumer() {
      if (consumer === undefined) {
        consumer = open(CONSUMER)
        consumer.on('error', error => log.debug({ err: error }, 'queue connection of workers'))
      }
      return { connection: consumer }
    },
    admit() {},
    dismiss() {},
    has: async (queue, id) => (await producer.exists(keyOf(queue, id))) === 1,
    async workersOf(queues) {
      const nodes = producer instanceof Cluster ? producer.nodes('master') : [producer]
      try {
        const lists = await Promise.all(nodes.map(node => node.client('LIST') as Promise<string>))
        const words = lists.flatMap(list => list.split(/\s/)).filter(word => word.startsWith('name='))
        const nameOf = (queue: string) => `name=${prefix}:${Buffer.from(queue).toString('base64')}`
        return new Map(queues.map(queue => [queue, words.filter(word => word === nameOf(queue)).length]))
      } catch (error) {
        if (isForbidden(error)) return undefined
        throw error
      }
    },
    // BullMQ's scripts follow these fields into the keys of other queues, and anybody who may write to the server can
    // set them.
    async sever(queue, id) {
      await producer.hdel(keyOf(queue, id), 'parent', 'parentKey', 'rjk', 'deid')
    },
    discardDamaged: queue => discardDamaged(producer, name => keyOf(queue, name)),
    discard: (queue, id) => discardUnfinishable(producer, name => keyOf(queue, name), id),
    async endLocks(queue, prefix) {
      const args = [keyOf(queue, ''), prefix, STALLED_MAX]
      const found = (await producer.eval(COUNT_STALLS, 1, keyOf(queue, 'active'), ...args)) as [string, string][]
      return { handedBack: 0, counted: found.map(([id, token]): LockedJob => ({ id, token })) }
    },
    async claim(id) {
      await producer.set(`${prefix}:installation`, id, 'NX')
      return (await producer.get(`${prefix}:installation`)) ?? id
    },
    async setNotice(name, text, lifeMs) {
      await producer.set(`${prefix}:${name}`, text, 'PX', lifeMs)
    },
    async notice(name) {
      try {
        return { text: (await producer.get(`${prefix}:${name}`)) ?? undefined, permitted: true }
      } catch (error) {
        if (isForbidden(error)) return { text: undefined, permitted: false }
        throw error
      }
    },
    ping: async () => {
      await withTimeout(CALL_MS, producer.ping())
    },
    async probe() {
      try {
        await withTimeout(CALL_MS, producer.eval(PROBE, 1, `${prefix}:probe`, PROBE_MS))
      } catch (error) {
        throw causeOf(error) ? error : ((await readRefusal(urls)) ?? error)
      }
    },
    onTrouble: listener => producer.on('close', listener),
    async close() {
      producer.disconnect()
      consumer?.disconnect()
    },
  }
}

/**
 * What the server answers to a connection that isn't waited for until it can be used: the client tells nobody that a
 * server is loading, refuses the password or has no connection left. Undefined if it says nothing of this kind.
 */
async function readRefusal(urls: string[]): Promise<Error | undefined> {
  const options = { ...PRODUCER, retryStrategy: null, lazyConnect: true, enableReadyCheck: false }
  const probe = connect(urls.slice(0, 1), options, false) as Redis
  const said: Error[] = []
  probe.on('error', error => said.push(error))
  try {
    await withTimeout(REFUSAL_MS, probe.connect())
    await withTimeout(REFUSAL_MS, probe.ping())
  } catch (error) {
    said.push(error as Error)
  } finally {
    probe.disconnect()
  }
  return said.find(causeOf)
}

function isReadOnly(error: Error): boolean {
  return error.message.startsWith('READONLY')
}

/** 1 (reconnect) for such an error, but not more often than every `ms`. */
function atMostEvery(ms: number, isSuch: (error: Error) => boolean): (error: Error) => 1 | false {
  let last = Number.NEGATIVE_INFINITY
  return error => {
    if (!isSuch(error) || performance.now() - last < ms) return false
    last = performance.now()
    return 1
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOPERM')
}

/**
 * Whether the prefix has a hash tag. Redis reads only the first braces of a key; if they are empty, it hashes the whole
 * key.
 */
function hasHashTag(prefix: string): boolean {
  return /^[^{]*\{[^}]+\}/.test(prefix)
}

/** Asks the first node that answers whether it belongs to a cluster, because a single URL may name a cluster, too. */
async function survey(urls: string[]): Promise<boolean> {
  let reason: unknown
  for (const url of urls) {
    const probe = connect([url], { ...PRODUCER, retryStrategy: null, lazyConnect: true }, false) as Redis
    let said: unknown // The last `error` event tells the cause; the rejected call only says that the connection closed.
    probe.on('error', error => {
      said = error
    })
    try {
      await withTimeout(CALL_MS, probe.connect())
      return /^cluster_enabled:1/m.test(await withTimeout(CALL_MS, probe.info('cluster')))
    } catch (error) {
      reason = said ?? error
    } finally {
      probe.disconnect()
    }
    if (reason instanceof Error && /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH)/.test(reason.message)) {
      throw new ConfigError('REDIS_URL: the server refuses this user or password, or does not permit INFO')
    }
  }
  throw new Fault('queue_away', reason)
}

function connect(urls: string[], role: RedisOptions, cluster: boolean): Client {
  const url = urls[0] ?? ''
  const settings: RedisOptions = { ...role, ...credentialsOf(url) }
  if (!cluster) return new TurnRedis({ ...settings, ...nodeOf(url), replyMapping: 'legacy' })
  const { enableOfflineQueue = true, retryStrategy: _, ...redisOptions } = settings
  return new Cluster(urls.map(nodeOf), {
    redisOptions: { ...redisOptions, replyMapping: 'legacy' } as ClusterRedisOptions,
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    // TLS certificates contain host names, so the host names that the nodes announce aren't resolved here.
    ...(settings.tls && { dnsLookup: (address, callback) => callback(null, address) }),
  })
}

/**
 * Sends the commands of one synchronous run of code by one system call: a system call costs more time than a command.
 */
class TurnRedis extends Redis {
  #isHeld = false

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    if (!this.#isHeld && this.status === 'ready') this.#hold(this.stream)
    return super.sendCommand(command, stream)
  }

  #hold(stream: Redis['stream']): void {
    this.#isHeld = true
    stream.cork()
    process.nextTick(() => {
      this.#isHeld = false
      stream.uncork()
    })
  }
}

function untilReady(client: Client): Promise<void> {
  return new Promise(resolve => {
    if (client.status === 'ready') resolve()
    else client.once('ready', () => resolve())
  })
}

/**
 * Throws `ConfigError` if the server may evict keys, and warns if AOF is off. Reads INFO, because managed servers and
 * strict ACLs forbid CONFIG.
 */
async function assertFit(node: Redis, log: QueueOptions['log']): Promise<void> {
  const info = `${await node.info('memory')}\n${await node.info('persistence')}`
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
  if (policy !== 'noeviction') {
    throw new ConfigError(
      `REDIS_URL: the server may delete jobs when its memory is full (maxmemory-policy ${policy ?? 'unknown'}); set maxmemory-policy noeviction`,
    )
  }
  if (!/^aof_enabled:1/m.test(info))
    log.warn('Redis runs without AOF: a crash of it loses queued jobs (appendonly yes)')
}
