// The queues with unpublished results are found by one row of each, however many wait.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import * as retention from '../../src/store/retention.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
  await retention.ensurePartitions(store, Date.now())
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})

const QUEUES: [client: string, replyTo: string | null, rows: number][] = [
  ['a', null, 20_000],
  ['b', 'x', 3],
  ['b', 'y', 1],
  ['b', null, 2],
  ['c', 'only', 1],
  ['d', null, 1],
]

it('each queue is found once, with the time of its first row', async () => {
  expect(await outbox.pendingQueues(store)).toEqual([])
  const began = Date.now() - 1_000
  for (const [index, [client, replyTo, rows]] of QUEUES.entries())
    await store.query({
      text: `insert into tokenmill.outbox (day, client_id, reply_to, result_id, receipt_id, revision, created_at)
select current_date + (n % 2)::int * 7, $1, $2, gen_random_uuid(), gen_random_uuid(), 1, $3::timestamptz + n * interval '1 ms'
from generate_series(0, $4 - 1) as n`,
      values: [client, replyTo, new Date(began - index * 60_000), rows],
    })
  await store.query({
    text: `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, state)
values (current_date, 'e', $1, $2, 1, 'SENT')`,
    values: [randomUUID(), randomUUID()],
  })
  const wanted = QUEUES.map(([clientId, replyTo], index) => ({ clientId, replyTo, oldest: began - index * 60_000 }))
  expect(await outbox.pendingQueues(store)).toEqual(wanted.reverse())
  const taken = await outbox.take(store, 'b', null, Date.now(), 10)
  expect(taken.map(({ clientId, replyTo }) => `${clientId} ${replyTo}`)).toEqual(['b null', 'b null'])
  expect(await outbox.take(store, 'b', 'x', Date.now(), 2)).toHaveLength(2)
})

it('no queue is read whole, nor sorted', async () => {
  await store.query({ text: 'analyze tokenmill.outbox' })
  const plans: string[] = []
  const explaining: Store = {
    ...store,
    async query({ text, values }) {
      const explained = { text: `explain (analyze, costs off) ${text}`, values: values ?? [] }
      const { rows } = await store.query<{ 'QUERY PLAN': string }>(explained)
      plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
      return { rows: [], count: 0 }
    },
  }
  await outbox.pendingQueues(explaining)
  await outbox.take(explaining, 'a', null, Date.now() + 60_000, 200)
  for (const plan of plans) {
    expect(plan).not.toContain('Seq Scan on outbox')
    const most = Math.max(...[...plan.matchAll(/Scan using \S+ .*? rows=(\d+)/g)].map(([, rows]) => Number(rows)))
    expect(most).toBeLessThanOrEqual(201)
  }
})
