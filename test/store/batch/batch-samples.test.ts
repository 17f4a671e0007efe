// The points of a batch's chart: what writes one, how they are thinned, and when they are erased.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { SAMPLES } from '../../../src/store/batch/batch-samples.ts'
import { BATCH_LIFE } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { sweep } from '../../../src/store/retention.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { CODER, codeAll } from '../coder.ts'

const CLIENT = 'c0000000000000000000000001'
const DAY_MS = 86_400_000

describe('the points of a batch', () => {
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

  const rows = async <R>(text: string, values: unknown[] = []) => (await store.query<R>({ text, values })).rows
  async function begin(chunks = 10): Promise<number> {
    const extent = { chunks, rows: chunks * 3, name: null, sha256: null }
    const made = await batches.open(store, {
      clientId: CLIENT,
      batchId: randomUUID(),
      recordKind: 'transaction',
      tokenScope: null,
      chunkRecords: 3,
      layout: {},
      entityId: null,
      acceptedAt: Date.now(),
      extent,
    })
    return made.batchNo
  }
  /** A chunk of two created rows and a refused one, and the sum of it. */
  async function work(batchNo: number, chunk: number): Promise<void> {
    await rows(
      `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, revision, attempt, accepted_at, completed_at)
values (gen_random_uuid(), current_date, $3, $3, 'transaction-batch', $4, '', '', 'SUCCEEDED', 200, $1, $2,
  '{"CREATED": 2, "REJECTED": 1}', 1, 1, now(), now())`,
      [batchNo, chunk, CLIENT, randomUUID()],
    )
    await codeAll(store)
    await rows(`update tokenmill.batch set summed_at = 'epoch' where batch_no = $1`, [batchNo])
    await batches.sum(store, CODER, batchNo)
  }
  const age = (batchNo: number, seconds: number) =>
    rows('update tokenmill.batch set sampled_at = sampled_at - make_interval(secs => $2) where batch_no = $1', [
      batchNo,
      seconds,
    ])
  /** Points come at most once in `seconds`; from now on a hundred times less often, so that this test has time. */
  const slowDown = async (batchNo: number, seconds: number) => {
    const slower = 'update tokenmill.batch set sample_s = 100 * sample_s where batch_no = $1 returning sample_s'
    expect(await rows(slower, [batchNo])).toEqual([{ sample_s: 100 * seconds }])
  }
  const pointsOf = async (batchNo: number) =>
    (
      await rows<{ rows_done: number; rows_refused: number; state: string }>(
        'select rows_done, rows_refused, state from tokenmill.batch_sample where batch_no = $1 order by at',
        [batchNo],
      )
    ).map(({ rows_done, rows_refused, state }) => `${rows_done} ${rows_refused} ${state}`)

  it('are its beginning, at most one in ten seconds, and its end', async () => {
    const no = await begin(4)
    await work(no, 0)
    expect(await pointsOf(no)).toEqual(['0 0 RUNNING', '3 1 RUNNING'])
    await work(no, 1)
    await slowDown(no, 10)
    await age(no, 900)
    await work(no, 2)
    expect(await pointsOf(no)).toHaveLength(2)
    await age(no, 200)
    await batches.sum(store, CODER, no)
    expect(await pointsOf(no)).toHaveLength(2)
    await work(no, 3)
    expect((await pointsOf(no)).slice(2)).toEqual(['12 4 RUNNING'])
  })

  it('are not made up for the time before this release', async () => {
    const no = await begin()
    await work(no, 0)
    await rows('delete from tokenmill.batch_sample where batch_no = $1', [no])
    await rows('update tokenmill.batch set sampled_at = null where batch_no = $1', [no])
    await work(no, 1)
    expect(await pointsOf(no)).toEqual(['6 2 RUNNING'])
  })

  it('are written by a pause, its end, a stall and the sender’s limit, whenever they come', async () => {
    const no = await begin()
    await work(no, 0)
    await batches.pause(store, no)
    await batches.resume(store, no)
    const stalledAt = Date.now() + BATCH_LIFE.stalledMs
    expect(await batches.noteStall(store, CODER, no, stalledAt)).toBe(true)
    expect(await batches.noteStall(store, CODER, no, stalledAt)).toBe(false)
    await work(no, 1)
    await batches.setLimit(store, no, 3)
    await work(no, 2)
    await batches.setLimit(store, no, null)
    await work(no, 3)
    expect((await pointsOf(no)).slice(2)).toEqual([
      ...['3 1 PAUSED', '3 1 RUNNING', '3 1 STALLED', '6 2 RUNNING'],
      ...['9 3 PAUSED', '12 4 RUNNING'],
    ])
  })

  it('are halved when there are too many, and then come half as often; no change of the state is lost', async () => {
    const no = await begin(1_000)
    await work(no, 0)
    await batches.pause(store, no)
    await batches.resume(store, no)
    await rows(
      `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
select $1, now() + make_interval(secs => n), 3, 1, 'RUNNING' from generate_series(1, $2::int) as n`,
      [no, SAMPLES.most - 5],
    )
    await age(no, 11)
    await work(no, 1)
    const points = await pointsOf(no)
    expect(points.length).toBeLessThan(SAMPLES.most / 2 + 5)
    expect(points.length).toBeGreaterThan(SAMPLES.most / 2 - 5)
    expect(points.slice(0, 3)).toEqual(['0 0 RUNNING', '3 1 RUNNING', '3 1 PAUSED'])
    expect(points.at(-1)).toBe('6 2 RUNNING')
    await slowDown(no, 20)
    await age(no, 1_900)
    await work(no, 2)
    expect(await pointsOf(no)).toHaveLength(points.length)
    await age(no, 200)
    await work(no, 3)
    expect(await pointsOf(no)).toHaveLength(points.length + 1)
  })

  it('stay few, whoever pauses and resumes the batch all the time', async () => {
    const no = await begin()
    for (let n = 0; n < SAMPLES.most; n += 1) await (n % 2 === 0 ? batches.pause(store, no) : batches.resume(store, no))
    expect((await pointsOf(no)).length).toBeLessThan(SAMPLES.most)
  })

  it('are erased when the batch had no activity for as long as receipts are kept', async () => {
    const [ended, going] = [await begin(), await begin()]
    for (const no of [ended, going]) await work(no, 0)
    await rows(`update tokenmill.batch set active_at = now() + interval '1 day' where batch_no = $1`, [going])
    await sweep(store, 90, Date.now() + 90 * DAY_MS - 60_000)
    expect(await pointsOf(ended)).toHaveLength(2)
    await sweep(store, 90, Date.now() + 90 * DAY_MS + 60_000)
    expect(await pointsOf(ended)).toEqual([])
    expect(await pointsOf(going)).toHaveLength(2)
  })
})
