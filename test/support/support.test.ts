import { Redis } from 'ioredis'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { describeEngines, describeRedis } from './engines.ts'
import { freshDatabase } from './postgres.ts'
import { startRedis } from './redis.ts'
import { closingLine } from './reporter.ts'
import { until } from './until.ts'

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return work(client).finally(() => client.end())
}

describe('waiting', () => {
  it('ends at its deadline and says for what', async () => {
    await expect(until(() => false, { ms: 30, what: 'the moon' })).rejects.toThrow('the moon did not come true')
  })
})

describe('a fresh database', () => {
  it('fails its suite if a connection to it was left open', async () => {
    const { url, drop } = await freshDatabase({ empty: true })
    const left = new Client({ connectionString: url, application_name: 'forgotten' })
    left.on('error', () => undefined)
    await left.connect()
    await expect(drop()).rejects.toThrow('forgotten')
  })

  it('has the schema, and shows nobody else what is written to it', async () => {
    const [one, two] = await Promise.all([freshDatabase(), freshDatabase()])
    await withClient(one.url, client => client.query('create table mine (n integer)'))
    const found = await withClient(two.url, client =>
      client.query("select to_regclass('mine') as mine, to_regnamespace('tokenmill') as ours"),
    )
    expect(found.rows).toEqual([{ mine: null, ours: 'tokenmill' }])
    await one.drop()
    await two.drop()
  })
})

describeRedis('a Redis of one test', () => {
  it('keeps what it acknowledged over kill -9, loses it by a flush, and refuses to evict', async () => {
    const server = await startRedis()
    const redis = new Redis(server.url, { maxRetriesPerRequest: null })
    redis.on('error', () => undefined)
    await redis.set('kept', '1')
    // appendfsync everysec: written to the file at once, and a killed process doesn't lose what the kernel has.
    await server.kill9()
    await server.restart()
    expect(await redis.get('kept')).toBe('1')
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction'])
    await server.flush()
    expect(await redis.get('kept')).toBeNull()
    redis.disconnect()
    await server.stop()
  })
})

describeEngines('an engine', engine => {
  it('comes with a database, and with Redis only where it is Redis', async () => {
    expect(await withClient(engine.databaseUrl, async client => (await client.query('select 1')).rowCount)).toBe(1)
    expect(engine.redisUrls !== undefined).toBe(engine.name === 'redis')
    expect(engine.prefix).toMatch(/^\{test-[^}]+\}$/)
  })
})

describe('the closing line', () => {
  it('tells of skipped tests only if there are any', () => {
    expect(closingLine({ passed: 2, failed: 0, skipped: 0 })).toBe('2 passed, 0 failed')
    expect(closingLine({ passed: 2, failed: 1, skipped: 3 })).toBe('2 passed, 1 failed, 3 skipped')
  })
})
