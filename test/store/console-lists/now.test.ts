// What the page Now reads stays bounded by what it shows: 100,000 batches of which few are open, and eight days of minutes.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { askProcesses } from '../../../producers/operate/checks/processes.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import * as seenOpen from '../../../src/store/console/open-batches.ts'
import type { Db, Statement, Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { type Lists, openLists, within } from './plan.ts'

const OURS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
let lists: Lists | undefined
let store: Store
let owner: Store
beforeAll(async () => {
  lists = await openLists()
  ;({ owner, store } = lists)
  // One of 5,000 is open.
  await owner.query({
    text: `insert into tokenmill.batch (client_id, batch_id, entity_id, record_kind, chunk_records, layout, accepted_at, extent_chunks,
  extent_rows, finished_at, chunks_done, revision, active_at)
select 'c', 'b' || n, $1, 'token-create', 1000, '{}', now(), 10, 10000, case when n % 5000 > 0 then now() end,
  case when n % 5000 > 0 then 10 else 5 end, case when n % 5000 > 0 then 1 else 0 end,
  now() - make_interval(secs => n / 5000 * 9) from generate_series(1, 100000) as n`,
    values: [OURS],
  })
  await owner.query({
    text: `insert into tokenmill.work_minute (minute, kind, done, refused, failed)
select date_trunc('minute', now()) - make_interval(mins => n), k, n % 5, 0, 0
from generate_series(0, 8 * 1440) as n, unnest($1::text[]) as k`,
    values: [CATALOGUE.kinds],
  })
  await owner.query({
    text: `insert into tokenmill.watch_minute (minute, interactive_ms, failed, outbox_ms, outbox_last_ms)
select date_trunc('minute', now()) - make_interval(mins => n), 0, 0, 0, 0 from generate_series(0, 8 * 1440) as n`,
  })
  await owner.query({ text: 'vacuum analyze tokenmill.batch, tokenmill.work_minute, tokenmill.watch_minute' })
})
afterAll(() => lists?.close())

type Read = (sight: Sight, db: Db) => Promise<unknown>
const LISTS: [string, Read, RegExp][] = [
  ['open batches', (sight, db) => seenOpen.listOpen(sight, db, { now: Date.now(), limit: 7 }), /batch_open/],
  [
    'rows by minute',
    (sight, db) => seenNow.listRows(sight, db, { kinds: CATALOGUE.kinds, minutes: 60 }),
    /work_minute_pkey/,
  ],
  ['waits', (sight, db) => seenNow.listWaits(sight, db), /work_minute_pkey/],
  ['minutes', (sight, db) => seenNow.listMinutes(sight, db, 60), /watch_minute_pkey/],
]
const SIGHTS: [string, Sight][] = [
  ['everything', sightOf(null)],
  ['some entities', sightOf([OURS])],
]

it.each(LISTS.flatMap(([name, read, index]) => SIGHTS.map(([who, sight]) => ({ name, who, read, sight, index }))))(
  '$name, for a person who sees $who, are read by their index',
  async ({ read, sight, index }) => {
    let plan = ''
    const explaining: Db = {
      async query<R>({ text, values }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return { rows: [] as R[], count: 0 }
      },
    }
    await read(sight, explaining)
    // Of people for some entities the planner knows that they get nothing of the installation.
    expect(plan).toMatch(sight.sees === 'all' || /batch/.test(index.source) ? index : /One-Time Filter: false|_pkey/)
    expect(plan).not.toContain('Seq Scan')
    await within(200, async () => {
      await read(sight, store)
    })
  },
)

it('open batches come in the order in which they need somebody', async () => {
  const now = Date.now()
  const listed = await seenOpen.listOpen(sightOf([OURS]), store, { now, limit: 100 })
  const isStalled = listed.map(batch => stateOf(batch, now) === 'STALLED')
  expect(new Set(isStalled).size).toBe(2)
  expect(listed).toHaveLength(20)
  expect(isStalled).toEqual(isStalled.toSorted((a, b) => Number(b) - Number(a)))
})

it('names a process that died only while no other was started in its place, as status does', async () => {
  await owner.query({
    text: `insert into tokenmill.process (process_id, role, host, version, connections, started_at, seen_at) values
(gen_random_uuid(), 'scheduler', 'one', '1', 1, now() - interval '1 hour', now() - interval '10 minutes'),
(gen_random_uuid(), 'scheduler', 'one', '1', 1, now() - interval '9 minutes', now()),
(gen_random_uuid(), 'scheduler', 'two', '1', 1, now() - interval '1 hour', now() - interval '10 minutes')`,
  })
  const listed = await seenNow.listProcesses(sightOf(null), store)
  expect(listed.map(({ host, silentMs }) => [host, silentMs > seenNow.DEAD_MS])).toEqual([
    ['one', false],
    ['two', true],
  ])
  const { state, says } = await askProcesses({ store: async () => owner })
  expect(state).toBe('warning')
  expect(says).toContain('scheduler on two')
  expect(says).not.toContain('scheduler on one (')
})
