// Whether the servers behind tokenmill answer, hold what this release needs, and agree on the time; and whether the
// key-encryption key opens the store's keys.
import type { Queues } from '../../../src/queue/engine.ts'
import type { RedisInfo } from '../../../src/queue/redis-info.ts'
import type { Store } from '../../../src/store/pool.ts'
import { assertSchema, MIGRATIONS } from '../../../src/store/schema.ts'
import * as storeServer from '../../../src/store/server.ts'
import { critical, unknown, type Verdict, warning, well, worstFirst } from '../check.ts'
import { judgeRoom } from '../redis-memory.ts'
import { duration } from '../units.ts'

/** The difference between the clocks; from `critical` on a worker takes no jobs. */
const SKEW_MS = { warning: 1_000, critical: 5_000 } as const

export interface ServerSources {
  store(): Promise<Pick<Store, 'query' | 'writableServers'>>
  queues(): Promise<Queues>
  /** Undefined if the queues are on PostgreSQL. */
  redis: (() => Promise<RedisInfo[]>) | undefined
  /** Unwraps all keys of the vault as a worker does; throws the error with which a worker would end. */
  openKeys(): Promise<{ kekId: string }>
}

export async function askStore({ store }: Pick<ServerSources, 'store'>): Promise<Verdict> {
  const began = performance.now()
  const db = await store()
  const writable = await storeServer.isWritable(db)
  const took = duration(performance.now() - began)
  if (!writable) return critical('PostgreSQL answers and takes no writes', 'find the primary; correct DATABASE_URL')
  if (db.writableServers() > 1) return critical('two PostgreSQL servers take writes', 'stop the old primary')
  return well(`PostgreSQL answered in ${took} and takes writes`)
}

export async function askQueues({ queues, redis }: Pick<ServerSources, 'queues' | 'redis'>): Promise<Verdict> {
  // If this user may not use INFO, only the queues are asked.
  const asked = redis?.().catch(() => [])
  const began = performance.now()
  const opened = await queues()
  await opened.ping()
  const took = duration(performance.now() - began)
  const [full] = worstFirst(((await asked) ?? []).flatMap(info => judgeRoom(info) ?? []))
  if (full) return full
  const name = opened.engine === 'redis' ? 'Redis' : 'PostgreSQL'
  return well(`queues on ${name} answered in ${took}`)
}

export async function askSchema({ store }: ServerSources): Promise<Verdict> {
  await assertSchema(await store())
  return well(`${MIGRATIONS.length} migrations, the last ${MIGRATIONS.at(-1)}, as this release needs them`)
}

export async function askVaultKeys({ openKeys }: ServerSources): Promise<Verdict> {
  try {
    const { kekId } = await openKeys()
    return well(`${kekId} opens the data keys and the signing key`)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'key_unavailable') throw error
    return critical('the key-encryption key does not open every key of the store', 'restore the KEK file from its copy')
  }
}

export async function askClock({ store }: ServerSources): Promise<Verdict> {
  const db = await store()
  await storeServer.ping(db)
  const before = Date.now()
  const there = await storeServer.readClock(db)
  const took = Date.now() - before
  const skew = before + took / 2 - there
  const off = Math.max(0, Math.abs(skew) - took / 2)
  const says = `this host's clock is ${duration(Math.abs(skew))} ${skew < 0 ? 'behind' : 'ahead of'} the store's`
  if (off > SKEW_MS.critical) return critical(`${says}: workers here take no jobs`, 'correct NTP on this host')
  if (off > SKEW_MS.warning) return warning(says, 'correct NTP on this host, or on the store’s')
  if (took > SKEW_MS.critical) return unknown('the store answers too slowly to compare the clocks')
  return well(says)
}
