// The speed of a batch: computed from a bounded number of its receipts, on its own page; the list reads no receipt.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { batchSpeed } from '../../../src/store/batch/batch-sums.ts'
import * as seen from '../../../src/store/console/batches.ts'
import type { Db, Statement } from '../../../src/store/pool.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, THEIRS } from './bundle.ts'

let bundle: ConsoleBundle
let batchNo: number
const CHUNKS = 300
beforeAll(async () => {
  bundle = await openConsoleBundle()
  batchNo = await bundle.addBatch({
    batchId: 'fast',
    extentRows: 1_000_000,
    more: "created_at = now() - interval '1 hour'",
  })
  // Ten chunks a second, of a hundred rows each, in the last 30 s.
  await bundle.rows(
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), current_date, 'c', 'c', 'token-batch', n::text, '', '', 'SUCCEEDED', 200, $1, n, '{"CREATED": 100}', 1, 1, now(),
  now() - make_interval(secs => ($2 - n) / 10.0) from generate_series(1, $2::int) as n`,
    [batchNo, CHUNKS],
  )
})
afterAll(() => bundle?.close())

const asked = () => ({ batchNo, createdAt: Date.now() - 3_600_000, now: Date.now() })

it('is that of the last chunks', async () => {
  const { store } = bundle.installation.vault
  const speed = await seen.findSpeed(sightOf([OURS]), store, asked())
  expect(speed).toBeGreaterThan(700)
  expect(speed).toBeLessThan(1_100)
  expect(await seen.findSpeed(sightOf([THEIRS]), store, asked())).toBe(0)
  // `batch show` says the same.
  const same = asked()
  expect(await batchSpeed(store, same, same.now)).toBe(await seen.findSpeed(sightOf([OURS]), store, same))
})

it('reads them by the index of chunks, and no more than it needs', async () => {
  const { store } = bundle.installation.vault
  let plan = ''
  const explaining: Db = {
    async query<R>({ text, values }: Statement) {
      await store.query({ text: 'analyze tokenmill.receipt' })
      const { rows } = await store.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values: values ?? [] })
      plan = rows.map(row => row['QUERY PLAN']).join('\n')
      return { rows: [] as R[], count: 0 }
    },
  }
  await seen.findSpeed(sightOf(null), explaining, asked())
  expect(plan).toMatch(/Limit/)
  expect(plan).toMatch(/Index Scan Backward using receipt_\w*batch_no_chunk/)
})

it('is on the page of the batch, and not in the list', async () => {
  const { cookie } = await bundle.addPerson('ada')
  expect((await bundle.call('GET', `/batches/${batchNo}`, { cookie })).text).toMatch(
    /<dt>Rate<\/dt><dd><span[^>]*>[\d,]+ rows/,
  )
  expect((await bundle.call('GET', '/batches', { cookie })).text).not.toContain('Rows/s')
})
