// What a re-encryption measures, on a real server: WAL, dead rows, and the durations of jobs that workers report.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { measureLoad } from '../../../src/store/reseal/store-load.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

describe('the load of a store', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  it('counts WAL and dead rows as they come', async () => {
    const before = await measureLoad(store, 'manifest_key.sealed')
    expect(before).toMatchObject({ replicaLagMs: null, rowsDead: 0 })
    await store.query({ text: 'alter table tokenmill.manifest_key set (autovacuum_enabled = false)' })
    await store.query({
      text: `insert into tokenmill.manifest_key (migration, sealed, key_version)
select 'm-' || n, decode(repeat('00', 60), 'hex'), 1 from generate_series(1, 500) as n`,
    })
    await store.query({ text: `update tokenmill.manifest_key set key_version = 2` })
    const after = await until(async () => {
      const load = await measureLoad(store, 'manifest_key.sealed')
      return load && load.rowsDead >= 500 && load
    })
    expect(after.walBytes - (before?.walBytes ?? 0)).toBeGreaterThan(500 * 60)
  })

  it('says how slow the slowest live worker is, and nothing of those that say nothing', async () => {
    const about = {
      host: 'h',
      version: '1.0.0',
      kinds: ['token-create'],
      features: [],
      connections: 1,
      keys: ['seal/1'],
    }
    const see = (workMs: number | null, processId: string = randomUUID()) =>
      processes.see(store, { ...about, processId, role: 'interactive', workMs })
    await see(null)
    expect(await processes.findWorkMs(store, 60_000)).toBeNull()
    const slow = randomUUID()
    await see(400, slow)
    await see(20)
    expect(await processes.findWorkMs(store, 60_000)).toBe(400)
    await see(30, slow)
    expect(await processes.findWorkMs(store, 60_000)).toBe(30)
    expect(await processes.findWorkMs(store, 0)).toBeNull()
  })
})
