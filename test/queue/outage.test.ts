// A queue server that goes away: producers are told within seconds, workers go on when it is back, no job is lost.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { keptLog, openPool, recorder, upgrade } from './bundle.ts'

const jobs = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `j_${from + i}`, data: { i: from + i } }))
const away = { code: 'queue_away' }

describe.skipIf(!findRedis())('while Redis is away', () => {
  let server: RedisServer
  let queues: Queues
  const { log } = keptLog()
  beforeEach(async () => {
    server = await startRedis()
    queues = await openRedis([server.url], { prefix: '{t}', lockMs: 3_000, log })
  })
  afterEach(async () => {
    await queues.close()
    await server.stop()
  })

  it('every call fails at once, and away and back are told once each', async () => {
    const told: string[] = []
    queues.on('away', () => told.push('away'))
    queues.on('back', () => told.push('back'))
    await queues.add('o-away', { id: 'j_1', data: {} })
    await server.kill9()
    const began = performance.now()
    await expect(queues.add('o-away', { id: 'j_2', data: {} })).rejects.toMatchObject(away)
    await expect(queues.addBulk('o-away', jobs(3, 3))).rejects.toMatchObject(away)
    await expect(queues.add('o-unused', { id: 'j_1', data: {} })).rejects.toMatchObject(away)
    await expect(queues.depth('o-away')).rejects.toMatchObject(away)
    await expect(queues.ping()).rejects.toMatchObject(away)
    expect(performance.now() - began).toBeLessThan(100_000)
    await until(() => told.length === 1)
    await server.restart()
    await until(() => told.length === 2)
    expect(told).toEqual(['away', 'back'])
    await queues.add('o-away', { id: 'j_2', data: {} })
    await queues.addBulk('o-away', jobs(3, 3))
    await queues.add('o-unused', { id: 'j_1', data: {} })
    expect(await queues.has('o-away', 'j_5')).toBe(true)
  })

  it('a call to a server that hangs fails within seconds', async () => {
    await queues.add('o-hangs', { id: 'j_1', data: {} })
    process.kill(server.pid(), 'SIGSTOP')
    try {
      const began = performance.now()
      await expect(queues.add('o-hangs', { id: 'j_2', data: {} })).rejects.toMatchObject(away)
      expect(performance.now() - began).toBeLessThan(100_000)
    } finally {
      process.kill(server.pid(), 'SIGCONT')
    }
    await until(() =>
      queues.add('o-hangs', { id: 'j_2', data: {} }).then(
        () => true,
        () => false,
      ),
    )
  })

  it('a worker waits, and handles every job when a killed server is back', async () => {
    const { seen, handler } = recorder(async () => {
      await new Promise(resolve => setTimeout(resolve, 2))
      return { done: true }
    })
    await queues.addBulk('o-killed', jobs(0, 500))
    const worker = queues.work('o-killed', handler, { concurrency: 5, stalledMs: 500 })
    await until(() => seen.length > 100)
    await server.kill9()
    await server.restart()
    const empty = async () =>
      Object.values(await queues.depth('o-killed').catch(() => ({ waiting: 1 }))).every(n => n === 0)
    await until(empty)
    expect(new Set(seen.map(job => job.id)).size).toBe(500)
    await worker.close(1_000)
  })

  it('a worker that is opened meanwhile begins when the server is back', async () => {
    await queues.add('o-late', { id: 'j_1', data: {} })
    await server.restart()
    await server.kill9()
    const { seen, handler } = recorder()
    const worker = queues.work('o-late', handler, { concurrency: 1 })
    await server.restart()
    await worker.ready
    await until(() => seen.length === 1)
    await worker.close(1_000)
  })

  it('a worker closes in time', async () => {
    const worker = queues.work('o-closes', recorder().handler, { concurrency: 1 })
    await worker.ready
    await server.kill9()
    const began = performance.now()
    await worker.close(500)
    expect(performance.now() - began).toBeLessThan(100_000)
  })

  it('a worker takes new jobs after everything was flushed under it, also under a job', async () => {
    const errors: unknown[] = []
    const flushed = Promise.withResolvers<void>()
    const { seen, handler } = recorder(async job => {
      if (job.id === 'j_0') await flushed.promise
      return { done: true }
    })
    const worker = queues.work('o-flush', handler, { concurrency: 2, onError: error => errors.push(error) })
    await queues.addBulk('o-flush', jobs(0, 5))
    await until(() => seen.length === 5)
    await server.flush()
    flushed.resolve()
    await until(() => errors.length > 0)
    await queues.addBulk('o-flush', jobs(10, 20))
    await until(() => seen.length === 25)
    expect(await queues.depth('o-flush')).toMatchObject({ waiting: 0, failed: 0 })
    await worker.close(1_000)
  })
})

describe('while PostgreSQL is away', () => {
  let database: FreshDatabase
  beforeEach(async () => {
    database = await freshDatabase()
    await upgrade(database.url)
  })
  afterEach(() => database.drop())

  it('a worker goes on after all connections were cut, and handles every job', async () => {
    const { log } = keptLog()
    const pool = openPool(database.url, 12)
    const queues = await openPostgres(pool, { prefix: 'x', lockMs: 3_000, log })
    const { seen, handler } = recorder(async () => {
      await new Promise(resolve => setTimeout(resolve, 2))
      return { done: true }
    })
    await queues.addBulk('o-cut', jobs(0, 200))
    const worker = queues.work('o-cut', handler, { concurrency: 5, stalledMs: 500 })
    await until(() => seen.length > 50)
    const other = openPool(database.url, 1)
    await other.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    const empty = async () =>
      Object.values(await queues.depth('o-cut').catch(() => ({ waiting: 1 }))).every(n => n === 0)
    await until(empty)
    expect(new Set(seen.map(job => job.id)).size).toBe(200)
    await queues.add('o-cut', { id: 'j_after', data: {} })
    await until(() => seen.some(job => job.id === 'j_after'))
    await worker.close(1_000)
    await queues.close()
    await Promise.all([pool.end(), other.end()])
  })

  it('calls fail, away and back are told once each, and a worker opened meanwhile begins afterwards', async () => {
    const { log } = keptLog()
    const pool = openPool(database.url, 12)
    let gone = false
    const refuse = () => Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
    const flaky = {
      options: pool.options,
      query: (text: string, values?: unknown[]) => (gone ? refuse() : pool.query(text, values)),
      connect: () => (gone ? refuse() : pool.connect()),
      end: () => pool.end(),
      on: (event: 'error', listener: (error: Error) => void) => pool.on(event, listener),
    }
    const queues = await openPostgres(flaky, { prefix: 'x', lockMs: 3_000, log })
    const told: string[] = []
    queues.on('away', () => told.push('away'))
    queues.on('back', () => told.push('back'))
    gone = true
    await expect(queues.add('o-gone', { id: 'j_1', data: {} })).rejects.toMatchObject(away)
    await expect(queues.has('o-gone', 'j_1')).rejects.toMatchObject(away)
    await until(() => told.length === 1)
    const { seen, handler } = recorder()
    const worker = queues.work('o-gone', handler, { concurrency: 1 })
    gone = false
    await until(() => told.length === 2)
    expect(told).toEqual(['away', 'back'])
    await queues.add('o-gone', { id: 'j_1', data: {} })
    await until(() => seen.length === 1)
    await worker.close(1_000)
    await queues.close()
    await pool.end()
  })
})
