// The metrics of open batches agree with the rule for each batch.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { countOpen } from '../../../src/store/batch/batch-counts.ts'
import { list } from '../../../src/store/batch/batch-list.ts'
import { WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { BATCH_LIFE, stateOf } from '../../../src/store/batch/batch-state.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { ALL } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

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

it('counts each open batch in the state that its row has by the rule', async () => {
  const now = Date.now()
  const { abandonedMs, stalledMs } = BATCH_LIFE
  await store.query({
    text: `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at, extent_chunks,
  limit_chunks, chunks_done, paused_at, active_at)
select 'c', row_number() over () || '', 'token-create', 500, '{}', now(), extent, most, done, paused, $1::timestamptz - age * interval '1 ms'
from unnest(array[null, 10]) as extent, unnest(array[null, 5]) as most, unnest(array[0, 5, 10]) as done,
  unnest(array[null, now()]) as paused, unnest($2::bigint[]) as age`,
    values: [new Date(now), [0, stalledMs - 1, stalledMs, abandonedMs - 1, abandonedMs]],
  })
  const batches = await list(ALL, store, { order: 'newest', state: 'open', limit: 1_000, now }, WHOLE_BATCH)
  expect(batches).toHaveLength(2 * 2 * 3 * 2 * 5)
  const states = batches.map(batch => stateOf(batch, now))
  const counts = await countOpen(store, now)
  for (const { state, batches: counted } of counts)
    expect({ state, counted }).toEqual({ state, counted: states.filter(one => one === state).length })
  expect(counts.map(({ state }) => state)).toEqual(['PAUSED', 'ABANDONED', 'STALLED', 'OPEN', 'RUNNING'])
  expect(counts.every(({ batches: counted }) => counted > 0)).toBe(true)
})
