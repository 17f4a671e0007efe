// What the page of one batch reads beside its row stays bounded by what it shows: its points, its refused rows chunk by chunk, and
// why it is stalled. The store has 2,000 batches, and the batch has 2,000 chunks among 40,000 of others.
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as seenStall from '../../../src/store/batch/stall.ts'
import * as seenSamples from '../../../src/store/console/batch-samples.ts'
import * as seenRefused from '../../../src/store/console/refused-rows.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { explaining, type Lists, openLists, within } from './plan.ts'

const OURS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
const LARGE = 7
const CLIENT = `'c' || lpad((n % 50)::text, 25, '0')`

let lists: Lists | undefined
let store: Store
let owner: Store
/** Tables, and weeks of tables, with many rows. Processes are few, and a week that has no rows yet is read whole. */
let large: string[]
beforeAll(async () => {
  lists = await openLists()
  ;({ owner, store } = lists)
  for (const text of [
    `insert into tokenmill.batch (client_id, batch_id, entity_id, record_kind, chunk_records, layout, accepted_at)
select ${CLIENT}, 'b' || n, '${OURS}', 'token-create', 1000, '{}', now() from generate_series(1, 2000) as n`,
    `insert into tokenmill.client (client_id, name, user_id, entities, roles)
select 'c' || lpad(n::text, 25, '0'), 'client ' || n, gen_random_uuid(), array['${OURS}']::uuid[], '{TOKEN_WRITE}' from generate_series(0, 1999) as n`,
    `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
select b, now() - make_interval(secs => n), n, 0, 'RUNNING' from generate_series(1, 400) as b, generate_series(1, 240) as n`,
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), current_date, 'c', 'c', 'token-batch', 'x' || n, '', '', 'SUCCEEDED', 200,
  case when n <= 2000 then ${LARGE} else n % 1000 + 10 end, n, '{"REJECTED": 0}', '[]', 1, 1, now(), now() from generate_series(1, 42000) as n`,
    `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, body)
select current_date, ${CLIENT}, gen_random_uuid(), gen_random_uuid(), 1, '{"code":400}' from generate_series(1, 20000) as n`,
    'vacuum analyze tokenmill.batch, tokenmill.client, tokenmill.batch_sample, tokenmill.receipt, tokenmill.outbox',
  ])
    await owner.query({ text })
  const { rows } = await owner.query<{ name: string }>({
    text: `select relname as name from pg_class where relnamespace = 'tokenmill'::regnamespace and relkind = 'r' and reltuples >= 1000`,
  })
  large = rows.map(({ name }) => name)
})
afterAll(() => lists?.close())

const BATCH = { clientId: `c${'7'.padStart(25, '0')}`, batchId: 'b7', recordKind: 'token-create' } as Parameters<
  typeof seenStall.findStallFacts
>[2]
const LISTS: [string, (sight: Sight, db: Db) => Promise<unknown>, RegExp][] = [
  ['the points of its chart', (sight, db) => seenSamples.list(sight, db, LARGE), /batch_sample_pkey/],
  [
    'its next chunks',
    (sight, db) => seenRefused.findChunks(sight, db, { batchNo: LARGE, from: 1_000, limit: 50 }),
    /receipt\w*_batch_no_chunk_idx|receipt_of_batch/,
  ],
  [
    'the refused rows of a chunk',
    (sight, db) => seenRefused.list(sight, db, { batchNo: LARGE, chunk: 3, after: 0, limit: 100 }),
    /batch_pkey[\s\S]*refused_rows|refused_rows[\s\S]*batch_pkey/,
  ],
  ['why it is stalled', (sight, db) => seenStall.findStallFacts(sight, db, BATCH), /client_pkey/],
]
const SIGHTS: [string, Sight][] = [
  ['everything', sightOf(null)],
  ['some entities', sightOf([OURS])],
]

/** The large tables that the plan reads from their beginning, whatever that costs. */
const readWhole = (plan: string) =>
  [...plan.matchAll(/Seq Scan on (?:\w+\.)?(\w+)/g)].flatMap(([, name = '']) => (large.includes(name) ? [name] : []))

it('knows the large tables, and finds one that is read whole', async () => {
  for (const name of ['batch', 'client', 'batch_sample']) expect(large).toContain(name)
  for (const name of [/^receipt/, /^outbox/]) expect(large.filter(one => name.test(one))).toHaveLength(1)
  const plan = await explaining(owner, db => db.query({ text: 'select counts from tokenmill.receipt', values: [] }))
  expect(readWhole(plan)).toHaveLength(1)
})

it.each(LISTS.flatMap(([name, read, index]) => SIGHTS.map(([who, sight]) => ({ name, who, read, sight, index }))))(
  '$name, for a person who sees $who, are read by their index',
  async ({ read, sight, index }) => {
    const plan = await explaining(store, db => read(sight, db))
    expect(plan).toMatch(index)
    expect(readWhole(plan)).toEqual([])
    await within(200, async () => {
      await read(sight, store)
    })
  },
)

it('refused rows of one chunk are read by the index of chunks inside the function, too', async () => {
  const { rows } = await owner.query<{ body: string }>({
    text: `select prosrc as body from pg_proc where proname = 'refused_rows'`,
  })
  const { rows: plan } = await owner.query<{ 'QUERY PLAN': string }>({
    text: `explain select from tokenmill.receipt where batch_no = ${LARGE} and day = current_date and chunk = 3`,
  })
  expect(rows[0]?.body).toMatch(/batch_no[\s\S]*day[\s\S]*chunk/)
  expect(plan.map(row => row['QUERY PLAN']).join('\n')).not.toContain('Seq Scan')
})
