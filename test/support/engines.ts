// The engines on which suites run: queues on Redis, or on PostgreSQL. Each suite has its own database and key prefix,
// so that test files can run at the same time on the same servers. A suite runs on both engines only if it tests what
// the queues decide or hold: delivery, order, loss, locks, waiting, stored bytes. Other suites run on one engine.
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
  /** The suite's database, on either engine. It is known once the suite runs, not while the suite is described. */
  readonly databaseUrl: string
}

/** The shared Redis of the run; undefined where there is none. */
export function redisUrl(): string | undefined {
  return inject('redisUrl') || undefined
}

/** A suite that needs the shared Redis. It is skipped if there is none; run/setup.ts says so. */
export const describeRedis = describe.skipIf(!redisUrl())

/**
 * Describes the same tests once per engine. `concurrent`: both engines at the same time, for tests that only wait; each
 * test is then told `IN_ORDER`, or all tests of an engine run at the same time, too.
 */
export function describeEngines(name: string, laws: (engine: Engine) => void, { concurrent = false } = {}): void {
  for (const engine of ['redis', 'postgres'] as const)
    (engine === 'redis' ? describeRedis : describe)(`${name} (${engine})`, { concurrent }, () =>
      laws(openEngine(engine)),
    )
}

export const IN_ORDER = { concurrent: false } as const

/** For tests that the queues don't affect; the queues are on PostgreSQL. */
export function describeStore(name: string, laws: (engine: Engine) => void): void {
  describe(name, () => laws(openEngine('postgres')))
}

/** For tests that the queues don't affect; the queues are on Redis, or on PostgreSQL if there is no Redis. */
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
