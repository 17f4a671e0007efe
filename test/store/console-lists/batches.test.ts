// The list of batches: every filter in both orders gives what a plain rule over all rows gives, page by page, and reads an index.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BATCH_STATES, type BatchState } from '../../../src/job/choices.ts'
import { openLog } from '../../../src/log.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { type BatchLife, stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenClients from '../../../src/store/console/batch-clients.ts'
import { SEEN_BATCH } from '../../../src/store/console/batches.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const BATCHES = 8_000
const ENTITIES = [1, 2, 3].map(n => `0b5a4f6e-6f0c-4a53-8d43-00000000000${n}`)
const CLIENTS = [1, 2, 3, 4].map(n => `c${String(n).padStart(25, '0')}`)
const DAY_MS = 86_400_000
const NOW = Date.parse('2026-11-23T12:00:00Z')

interface Row extends BatchLife {
  batchNo: number
  clientId: string
  entityId: string | null
  createdAt: number
}

describe('the list of batches', () => {
  let database: FreshDatabase
  let store: Store
  let all: Row[]
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
    // One in 50 is open, in each of the states; each third of the entities' batches is of none.
    await store.query({
      text: `insert into tokenmill.batch (client_id, batch_id, entity_id, record_kind, chunk_records, layout, accepted_at, created_at,
  extent_chunks, limit_chunks, chunks_done, paused_at, cancelled_at, finished_at, revision, active_at)
select ($1::text[])[1 + n % 4], 'batch-' || n, case when n % 3 = 0 then null else ($2::uuid[])[1 + n % 5 % 3] end, 'token-create', 10, '{}',
  at, at, case when n % 50 = 0 and n % 250 = 0 then null else 4 end, case when n % 350 = 0 then 2 end,
  case when n % 50 <> 0 and n % 7 <> 0 then 4 else 2 end, case when n % 150 = 0 then at end,
  case when n % 50 <> 0 and n % 7 = 0 then at end,
  case when n % 50 <> 0 and n % 7 <> 0 then at end, case when n % 50 <> 0 and n % 7 <> 0 then 1 else 0 end,
  case when n % 200 = 0 then $3::timestamptz when n % 100 = 0 then at - interval '20 days' else $3::timestamptz - interval '1 hour' end
from (select n, $3::timestamptz - make_interval(mins => n / 2) as at from generate_series(1, $4::int) as n) as made`,
      values: [CLIENTS, ENTITIES, new Date(NOW), BATCHES],
    })
    await store.query({ text: 'analyze tokenmill.batch' })
    const { rows } = await store.query<Row>({
      text: `select batch_no as "batchNo", client_id as "clientId", entity_id as "entityId", created_at as "createdAt",
  extent_chunks as "extentChunks", limit_chunks as "limitChunks", chunks_done as "chunksDone", paused_at as "pausedAt",
  cancelled_at as "cancelledAt", finished_at as "finishedAt", active_at as "activeAt" from tokenmill.batch`,
    })
    all = rows
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const RANKS: Partial<Record<BatchState, number>> = {
    STALLED: 0,
    PAUSED: 1,
    RUNNING: 2,
    OPEN: 2,
    ABANDONED: 3,
  }
  const rankOf = (row: Row) => RANKS[stateOf(row, NOW)] ?? 4
  const STATES: readonly batchList.ListFilter['state'][] = [undefined, 'open', 'going', ...BATCH_STATES]
  const isIn = (state: batchList.ListFilter['state'], row: Row) => {
    const own = stateOf(row, NOW)
    if (state === undefined) return true
    if (state === 'open') return own !== 'FINISHED' && own !== 'CANCELLED'
    if (state === 'going') return own === 'RUNNING' || own === 'OPEN'
    return own === state
  }
  function expected(sight: Sight, { state, clientId, since, until, order }: batchList.Listed): number[] {
    return all
      .filter(row => sight.sees === 'all' || (row.entityId !== null && sight.entities.includes(row.entityId)))
      .filter(row => isIn(state, row) && (clientId === undefined || row.clientId === clientId))
      .filter(row => row.createdAt >= (since ?? 0) && row.createdAt < (until ?? Number.POSITIVE_INFINITY))
      .sort(
        (a, b) => (order === 'need' ? rankOf(a) - rankOf(b) : 0) || b.createdAt - a.createdAt || b.batchNo - a.batchNo,
      )
      .map(row => row.batchNo)
  }

  const SIGHTS: Record<string, Sight> = {
    'all entities': sightOf(null),
    'one entity': sightOf(ENTITIES.slice(0, 1)),
    'two entities': sightOf(ENTITIES.slice(1)),
  }
  const FILTERS: Record<string, batchList.ListFilter> = {
    'no other filter': {},
    'a client': { clientId: CLIENTS[2] },
    days: { since: NOW - 5 * DAY_MS, until: NOW - 3 * DAY_MS },
  }
  const cases = Object.entries(SIGHTS).flatMap(([who, sight]) =>
    batchList.LIST_ORDERS.flatMap(order =>
      Object.entries(FILTERS).flatMap(([what, filter]) =>
        STATES.map(state => ({ who, sight, order, what, asked: { ...filter, state, order, limit: 0, now: NOW } })),
      ),
    ),
  )

  it('has batches in every state', () => {
    expect(new Set(all.map(row => stateOf(row, NOW)))).toEqual(new Set(BATCH_STATES))
  })

  it('is, page by page, what the rule says', async () => {
    for (const { who, sight, order, what, asked } of cases) {
      const wanted = expected(sight, asked)
      const found: number[] = []
      let after: batchList.ListPlace | undefined
      const [some, limit] = [Math.min(wanted.length, 700), 97]
      while (found.length < some) {
        const page = await batchList.list(sight, store, { ...asked, limit, after }, SEEN_BATCH)
        found.push(...page.map(batch => batch.batchNo))
        after = page.at(-1)
        if (page.length < limit) break
      }
      const name = `${who}, ${order}, ${what}, ${asked.state}`
      expect(found.slice(0, some), name).toEqual(wanted.slice(0, some))
      if (found.length < limit) expect(found, name).toEqual(wanted)
    }
  })

  it('is the same for commands, which show whole rows, and in all its pages', async () => {
    const asked = { order: 'newest', state: 'open', limit: BATCHES, now: NOW } as const
    for (const sight of Object.values(SIGHTS)) {
      const wanted = expected(sight, asked)
      const whole = await batchList.list(sight, store, asked, WHOLE_BATCH)
      expect(whole.map(({ batchNo }) => batchNo)).toEqual(wanted)
      expect(whole.filter(({ chunkRecords }) => chunkRecords !== 10)).toEqual([])
      const pages: number[][] = []
      for await (const page of batchList.listPages(sight, store, { now: NOW }, WHOLE_BATCH))
        pages.push(page.map(({ batchNo }) => batchNo))
      expect(pages.length).toBeGreaterThan(1)
      expect(pages.flat()).toEqual(expected(sight, { order: 'newest', limit: 0, now: NOW }))
    }
  })

  it('finds an id’s batches of one client, or of all whose rows are seen', async () => {
    const rename = `update tokenmill.batch set batch_id = 'same' where batch_no = any($1)`
    const own = ENTITIES[0] ?? ''
    const ours = all.find(row => row.entityId === own)
    const theirs = all.find(row => row.entityId === ENTITIES[1] && row.clientId !== ours?.clientId)
    const rows = [ours, theirs].filter(row => row !== undefined).sort((a, b) => b.batchNo - a.batchNo)
    await store.query({ text: rename, values: [rows.map(({ batchNo }) => batchNo)] })
    const found = async (sight: Sight, clientId?: string) =>
      (await batchList.findById(sight, store, { batchId: 'same', clientId }, WHOLE_BATCH)).map(batch => batch.batchNo)
    expect(await found(sightOf(null))).toEqual(rows.map(({ batchNo }) => batchNo))
    expect(await found(sightOf([own]))).toEqual([ours?.batchNo])
    expect(await found(sightOf([own]), theirs?.clientId)).toEqual([])
    expect(await found(sightOf(null), theirs?.clientId)).toEqual([theirs?.batchNo])
  })

  it('has no page behind a batch of somebody else, as behind none', async () => {
    const [own, others] = [ENTITIES[0] ?? '', ENTITIES[1] ?? '']
    const theirs = all.find(row => row.entityId === others)?.batchNo ?? 0
    for (const batchNo of [theirs, 999_999_999]) {
      const asked = { order: 'newest', after: { rank: 0, batchNo }, limit: 10, now: NOW } as const
      expect(await batchList.list(sightOf([own]), store, asked, SEEN_BATCH)).toEqual([])
    }
  })

  it('offers the clients of the batches that a person sees, and no other', async () => {
    const none = `update tokenmill.batch set entity_id = null where client_id = $1 and entity_id = $2`
    await store.query({ text: none, values: [CLIENTS[3], ENTITIES[0]] })
    const ids = async (sight: Sight, limit = 10) =>
      (await seenClients.listOfBatches(sight, store, limit)).map(({ clientId }) => clientId)
    expect(await ids(sightOf(null))).toEqual(CLIENTS)
    expect(await ids(sightOf(null), 2)).toEqual(CLIENTS.slice(0, 2))
    expect(await ids(sightOf(ENTITIES.slice(0, 1)))).toEqual(CLIENTS.slice(0, 3))
    expect(await ids(sightOf(['0b5a4f6e-6f0c-4a53-8d43-00000000000f']))).toEqual([])
  })

  it('reads an index, whatever is asked', async () => {
    const plans: string[] = []
    const explaining: Db = {
      async query<R>({ text, values }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
        plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
        return { rows: [] as R[], count: 0 }
      },
    }
    for (const { who, sight, order, what, asked } of cases) {
      for (const after of [undefined, { rank: order === 'need' ? 4 : 0, batchNo: all[4_000]?.batchNo ?? 0 }]) {
        await batchList.list(sight, explaining, { ...asked, limit: 51, after }, SEEN_BATCH)
        expect(plans.at(-1), `${who}, ${order}, ${what}, ${asked.state}`).not.toContain('Seq Scan on batch')
      }
    }
    for (const sight of Object.values(SIGHTS)) {
      await seenClients.listOfBatches(sight, explaining, 200)
      expect(plans.at(-1)).not.toContain('Seq Scan on batch')
    }
  })
})
