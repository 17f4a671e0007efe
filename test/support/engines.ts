// The engines that suites run on: queues on Redis, or on PostgreSQL. Each suite has a database and a key prefix of its
// own, so that test files can run beside one another on the same servers. A suite runs on both engines only for what the
// queues decide or hold: delivery, order, loss, locks, waiting, the bytes that lie there. All else (answers over HTTP,
// rules on cards and credentials, files, reports) runs on one, and about as many suites on the one as on the other.
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { type FreshDatabase, freshDatabase } from './postgres.ts'

export interface Engine {
  readonly name: 'redis' | 'postgres'
  /** BullMQ's key prefix, unique to the suite. */
  readonly prefix: string
  /** Undefined on PostgreSQL. */
  readonly redisUrls: string[] | undefined
  /** The suite's database, on either engine. Known once the suite runs, not while it is being described. */
  readonly databaseUrl: string
}

/** The shared Redis of the run; undefined where there is none. */
export function redisUrl(): string | undefined {
  return inject('redisUrl') || undefined
}

/** A suite that needs the shared Redis, skipped (loudly, see run/setup.ts) where there is none. */
export const describeRedis = describe.skipIf(!redisUrl())

/** Describes the same laws once per engine: laws on what the queues decide or hold. */
export function describeEngines(name: string, laws: (engine: Engine) => void): void {
  for (const engine of ['redis', 'postgres'] as const)
    (engine === 'redis' ? describeRedis : describe)(`${name} (${engine})`, () => laws(openEngine(engine)))
}

/** Laws in which the queues have no part, with these on PostgreSQL. */
export function describeStore(name: string, laws: (engine: Engine) => void): void {
  describe(name, () => laws(openEngine('postgres')))
}

/** Laws in which the queues have no part, with these on Redis, or on PostgreSQL where there is no Redis. */
export function describeOnRedis(name: string, laws: (engine: Engine) => void): void {
  describe(name, () => laws(openEngine(redisUrl() ? 'redis' : 'postgres')))
}

function openEngine(name: Engine['name']): Engine {
  const prefix = `{test-${process.pid}-${randomBytes(4).toString('hex')}}`
  const redisUrls = name === 'redis' ? redisUrl()?.split(',') : undefined
  let database: FreshDatabase | undefined
  beforeAll(async () => {
    database = await freshDatabase()
  })
  afterAll(async () => {
    if (redisUrls?.[0]) await removeKeys(redisUrls[0], prefix)
    await database?.drop()
  })
  return {
    name,
    prefix,
    redisUrls,
    get databaseUrl() {
      if (!database) throw new Error('the database of a suite is known inside its hooks and tests only')
      return database.url
    },
  }
}

async function removeKeys(url: string, prefix: string): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1, connectTimeout: 5_000, lazyConnect: false })
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 }))
      if ((keys as string[]).length > 0) await redis.unlink(...(keys as string[]))
  } finally {
    redis.disconnect()
  }
}
