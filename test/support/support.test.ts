import { existsSync } from 'node:fs'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { describeEngines, describeRedis } from './engines.ts'
import { freshDatabase } from './postgres.ts'
import { startScript } from './process.ts'
import { startRedis } from './redis.ts'
import { byLength, LONGEST } from './run/longest-first.ts'
import { closingLine } from './run/reporter.ts'
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

  it('goes on while what is awaited moves, and ends when it stands still, with the last progress', async () => {
    let done = 0
    const look = () => {
      done = Math.min(20, done + 1)
      return false
    }
    await expect(until(look, { ms: 30, what: 'the moon', progress: () => done })).rejects.toThrow(
      'the moon did not come true, and nothing moved for 30 ms; the last progress: 20',
    )
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
    const listeners = process.listenerCount('exit')
    const server = await startRedis()
    expect(process.listenerCount('exit')).toBe(listeners)
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

describe('the end of a run', () => {
  it('repeats each failure with its file, its title and its reason, before the closing line', async () => {
    const run = startScript('test/run.ts', ['--config', 'test/support/run/red/red-config.ts'])
    const { code } = await run.exit
    expect(code).toBe(1)
    const end = run.stdout().slice(run.stdout().lastIndexOf('\nfailed:\n'))
    expect(end).toMatch(/✗ test\/support\/run\/red\/red\.ts > a red test > fails\n +two is not one/)
    expect(end).toMatch(/✗ test\/support\/run\/red\/red\.ts\n +a hook that fails/)
    expect(end.trimEnd().split('\n').at(-1)).toBe('1 passed, 2 failed')
  })
})

describe('the order of files', () => {
  it('begins with the longest, all of which are there', () => {
    expect(LONGEST.filter(file => !existsSync(file))).toEqual([])
    const [longest = '', next = ''] = LONGEST
    const files = ['test/b.test.ts', next, 'test/a.test.ts', longest]
    expect(files.toSorted(byLength)).toEqual([longest, next, 'test/a.test.ts', 'test/b.test.ts'])
  })
})
