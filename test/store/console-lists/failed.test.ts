// The clients beside failed jobs: each statement reads an index, for people of all entities and of some.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as seenClients from '../../../src/store/access/seen-clients.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import * as failedActs from '../../../src/store/person/failed-acts.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const ENTITY = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
const OTHER = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0002'
const CLIENTS = 2_000

describe('what stands beside failed jobs', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
    await store.query({
      text: `insert into tokenmill.client (client_id, name, user_id, entities, roles, system)
select 'c' || lpad(n::text, 25, '0'), 'client ' || n, gen_random_uuid(), array[$1::uuid], '{}', false
from generate_series(1, $2::int) as n`,
      values: [ENTITY, CLIENTS],
    })
    await store.query({
      text: `insert into tokenmill.failed_act (nonce, action, kind, copy_id, audit_id, outcome)
select 'nonce ' || n / 500, 'failed.retry', 'report', 'f_' || n, 1, 'done' from generate_series(1, 20000) as n`,
    })
    for (const table of ['client', 'failed_act']) await store.query({ text: `analyze tokenmill.${table}` })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** The plan of what is asked. */
  const planOf = async (ask: (db: Db) => Promise<unknown>) => {
    let plan = ''
    await ask({
      async query<R>({ text, values = [] }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values })
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return { rows: [] as R[], count: 0 }
      },
    })
    return plan
  }

  it.each([
    ['all entities', null],
    ['one entity', [ENTITY]],
  ])('is read by an index, for a person of %s', async (_who, entities) => {
    const sight = sightOf(entities)
    const plans = [
      await planOf(db => seenClients.find(sight, db, 'c'.padEnd(26, '0'))),
      await planOf(db => seenClients.list(sight, db, { limit: 200 })),
      await planOf(db => pendingActs.listEnds(db, 'nonce 3')),
      await planOf(db => failedActs.begin(db)),
    ]
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan/)
    for (const plan of plans) expect(plan).toMatch(/Index|Bitmap/)
  })

  it('is of clients that act for no other entity, and of none of tokenmill’s own', async () => {
    const set = (name: string, change: string) =>
      store.query({ text: `update tokenmill.client set ${change} where name = $1`, values: [name] })
    await set('client 1', `entities = array['${ENTITY}', '${OTHER}']::uuid[]`)
    await set('client 2', `entities = '{}'`)
    await set('client 3', 'system = true')
    const idOf = (n: number) => `c${String(n).padStart(25, '0')}`
    const seen = async (entities: string[] | null, n: number) =>
      (await seenClients.find(sightOf(entities), store, idOf(n))) !== undefined
    for (const n of [1, 2, 3]) expect([await seen([ENTITY], n), await seen(null, n)]).toEqual([false, true])
    expect([await seen([ENTITY], 4), await seen([OTHER], 4), await seen([ENTITY, OTHER], 1)]).toEqual([
      true,
      false,
      true,
    ])
    expect((await seenClients.list(sightOf([ENTITY]), store, { limit: 1 })).map(({ clientId }) => clientId)).toEqual([
      idOf(4),
    ])
  })
})
