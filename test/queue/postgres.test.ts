// Which PostgreSQL is fit for queues: the schema is the release's, the pool is for queues and large enough.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { keptLog, openPool, recorder, upgrade } from './bundle.ts'

describe('opening PostgreSQL', () => {
  let database: FreshDatabase
  const pools: pg.Pool[] = []
  const { log } = keptLog()
  beforeEach(async () => {
    database = await freshDatabase({ empty: true })
  })
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.end()
    await database.drop()
  })
  function open(max = 10, more: pg.PoolConfig = {}): Promise<Queues> {
    const pool = openPool(database.url, max, more)
    pools.push(pool)
    return openPostgres(pool, { prefix: 'x', lockMs: 30_000, log })
  }

  it('refuses a database without the queue schema, with an older or with a newer one', async () => {
    await expect(open()).rejects.toThrow(/run `tokenmill schema upgrade`$/)
    await upgrade(database.url)
    await (await open()).close()
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(
      'update bullmq.migration set version = version + 1 where version = (select max(version) from bullmq.migration)',
    )
    await expect(open()).rejects.toThrow(/newer than this release/)
    await client.query('delete from bullmq.migration where version = (select max(version) from bullmq.migration)')
    await expect(open()).rejects.toThrow(ConfigError)
    await client.end()
  })

  it('upgrades twice as well as once', async () => {
    await upgrade(database.url)
    await upgrade(database.url)
    await (await open()).close()
  })

  it('has the dead rows of jobs removed often, and leaves a setting of the operator as it is', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const optionsOf = async () =>
      (await client.query(`select reloptions from pg_class where oid = 'bullmq.job'::regclass`)).rows[0].reloptions
    await upgrade(database.url)
    expect(await optionsOf()).toEqual(['autovacuum_vacuum_scale_factor=0.01'])
    await client.query('alter table bullmq.job set (autovacuum_vacuum_scale_factor = 0.5)')
    await upgrade(database.url)
    expect(await optionsOf()).toEqual(['autovacuum_vacuum_scale_factor=0.5'])
    await client.end()
  })

  it('refuses a pool whose search_path is not the queue schema', async () => {
    await upgrade(database.url)
    await expect(open(10, { options: '' })).rejects.toThrow(/search_path=bullmq/)
  })

  it('fails as away where there is no server', async () => {
    const pool = openPool('postgres://nobody@127.0.0.1:1/none', 1)
    pools.push(pool)
    await expect(openPostgres(pool, { prefix: 'x', lockMs: 30_000, log })).rejects.toMatchObject({ code: 'queue_away' })
  })

  it('refuses the worker for which the connections of the pool would not do, and takes it after another has gone', async () => {
    await upgrade(database.url)
    const queues = await open(9)
    const work = () => queues.work('p-budget', recorder().handler, { concurrency: 1 })
    const workers = [work(), work()]
    expect(work).toThrow(ConfigError)
    expect(work).toThrow(/9 connections, but 3 workers need 12/)
    await workers[0]?.close(1_000)
    workers.push(work())
    await Promise.all(workers.map(worker => worker.close(1_000)))
    await queues.close()
  })

  it('serves hundreds of queues on a few connections', async () => {
    await upgrade(database.url)
    const queues = await open(3)
    for (let i = 0; i < 300; i++) await queues.add(`results-${i}`, { id: 'r_1', data: {} })
    expect(await queues.has('results-299', 'r_1')).toBe(true)
    expect(pools.at(-1)?.totalCount).toBeLessThanOrEqual(3)
    expect(pools.at(-1)?.listenerCount('error')).toBe(1)
    await queues.close()
  })
})
