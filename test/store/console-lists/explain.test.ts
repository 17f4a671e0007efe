// Every look-up of the page Explain uses an index, whatever the sight, and reads a bounded number of rows: on a store of many
// weeks, with a reference that thousands of jobs of somebody else have.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { findById } from '../../../src/store/batch/batch-list.ts'
import { SEEN_BATCH } from '../../../src/store/console/batches.ts'
import * as jobs from '../../../src/store/explain/jobs.ts'
import * as names from '../../../src/store/explain/names.ts'
import { type Db, openStore, type Statement, type Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const OURS = randomUUID()
const COMMON = 5_000
/** Rows that one look-up by a name may read at most, of which it looks at 500. */
const READ_MAX = 600

describe('the look-ups of Explain', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
    const run = (text: string, ...values: unknown[]) => store.query({ text, values })
    for (let week = 1; week <= 5; week += 1)
      await run(`select tokenmill.make_week('receipt', date_trunc('week', current_date)::date - 7 * ${week})`)
    const receipts = (reference: string, rows: number) =>
      run(
        `with made as (
  insert into tokenmill.receipt (receipt_id, day, entity_id, client_id, iss, kind, jti, request_digest, envelope_digest, reference, status,
    code, revision, attempt, accepted_at, completed_at)
  select gen_random_uuid(), current_date - n % 30, gen_random_uuid(), 'c', 'c', 'token-create', n::text, '', '', ${reference}, 'SUCCEEDED',
    200, 1, 1, now(), now() - make_interval(days => n % 30) from generate_series(1, $1::int) as n returning receipt_id, day)
insert into tokenmill.receipt_key (receipt_id, day, revision) select receipt_id, day, 1 from made`,
        rows,
      )
    await receipts(`'ref-' || n`, 5_000)
    await receipts(`'common'`, COMMON)
    await run(
      `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, body)
select current_date, 'c', gen_random_uuid(), gen_random_uuid(), 1, '{"code":400}' from generate_series(1, 5000)`,
    )
    await run(
      `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at)
select 'c', 'b-' || n, 'token-create', 500, '{}', now() from generate_series(1, 5000) as n`,
    )
    for (const table of ['receipt', 'receipt_key', 'outbox', 'batch']) await run(`analyze tokenmill.${table}`)
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** What PostgreSQL does, with the numbers of rows that it really read. */
  async function planOf(use: (db: Db) => Promise<unknown>): Promise<string> {
    let plan = ''
    const explaining: Db = {
      async query<R>({ text, values }: Statement) {
        const { rows } = await store.query<{ 'QUERY PLAN': string }>({
          text: `explain (analyze, costs off, timing off, summary off) ${text}`,
          values: values ?? [],
        })
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
        return { rows: [] as R[], count: 0 }
      },
    }
    await use(explaining)
    return plan
  }

  const id = randomUUID()
  const LOOK_UPS: readonly [string, (sight: Sight, db: Db) => Promise<unknown>][] = [
    ['receipts by id', (sight, db) => jobs.listReceipts(sight, db, [id, randomUUID()])],
    ['rows of the outbox', (sight, db) => jobs.findTold(sight, db, [id])],
    ['answers', (sight, db) => jobs.listAnswers(sight, db, id)],
    ['an operation', (sight, db) => jobs.findOperation(sight, db, id)],
    ['calls to providers', (sight, db) => jobs.listCalls(sight, db, id)],
    ['a reference', (sight, db) => names.findByReference(sight, db, 'ref-17', 20)],
    ['a common reference', (sight, db) => names.findByReference(sight, db, 'common', 20)],
    ['the jobs of a token', (sight, db) => names.findByToken(sight, db, id, 20)],
    ['a token', (sight, db) => names.findToken(sight, db, id)],
    ['the batches of an id', (sight, db) => findById(sight, db, { batchId: 'b-17' }, SEEN_BATCH)],
  ]
  it.each(LOOK_UPS)('find %s by an index', async (_, use) => {
    for (const sight of [sightOf(null), sightOf([OURS])]) {
      const plan = await planOf(db => use(sight, db))
      expect(plan).not.toMatch(/Seq Scan on (receipt|outbox|batch|token|operation|scheme_intent)/)
      const read = [...plan.matchAll(/Scan.* on (?:receipt|outbox|batch|token)\w*.*rows=(\d+)(?:\.\d+)? loops=(\d+)/g)]
      for (const [, rows, loops] of read) expect(Number(rows) * Number(loops)).toBeLessThan(READ_MAX)
    }
  })

  it('find the newest jobs of a name', async () => {
    const found = await names.findByReference(sightOf(null), store, 'common', 20)
    const { rows } = await store.query<{ days: number }>({
      text: `select distinct current_date - day as days from tokenmill.receipt where receipt_id = any($1)`,
      values: [found],
    })
    expect(found).toHaveLength(20)
    // The newest week alone holds more than are looked at; which of its jobs are found isn't said.
    expect(Math.max(...rows.map(({ days }) => days))).toBeLessThan(7)
  })
})
