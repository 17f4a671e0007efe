// The sums of what workers did in each minute: they are exact however often, and by however many schedulers, heartbeats are
// added up.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import * as retention from '../../../src/store/retention.ts'
import * as watched from '../../../src/store/watch/watched.ts'
import * as workMinutes from '../../../src/store/watch/work-minutes.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { asWorker } from '../../support/workers.ts'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(asWorker(database.url), { log: openLog('silent'), connectionsMax: 8 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})
beforeEach(() => store.query({ text: 'delete from tokenmill.process' }))

const NOW_MINUTE = Math.floor(Date.now() / 60_000)
const { WAIT_BOUNDS_MS } = workMinutes

/** A minute of work `ago` minutes before this one; `waits`: how many jobs waited up to 10, 25, 50, … ms. */
function workOf(ago: number, more: Partial<workMinutes.WorkMinute> = {}): workMinutes.WorkMinute {
  const waits = [...WAIT_BOUNDS_MS, 0].map((_, at) => more.waits?.[at] ?? 0)
  return { minute: NOW_MINUTE - ago, kind: 'token-batch', done: 0, refused: 0, failed: 0, ...more, waits }
}
const worker = (processId: string = randomUUID()) => ({
  processId,
  role: 'bulk' as const,
  host: 'one',
  version: '1.0.0',
  kinds: ['token-batch'],
  features: [],
  connections: 1,
  keys: [],
})
async function sums(kind = 'token-batch') {
  const { rows } = await store.query<{
    ago: number
    done: number
    refused: number
    failed: number
    p95: number | null
  }>({
    text: `select ${NOW_MINUTE} - (extract(epoch from minute) / 60)::integer as ago, done, refused, failed, wait_p95_ms as p95
from tokenmill.work_minute where kind = $1 order by minute desc`,
    values: [kind],
  })
  return rows
}

describe('a minute of work', () => {
  it('is the sum over all workers, once, with two schedulers that look again and again', async () => {
    const [a, b] = [worker(), worker()]
    await processes.see(store, { ...a, work: [workOf(2, { done: 500, refused: 3, waits: [90, 10] })] })
    await processes.see(store, { ...b, work: [workOf(2, { done: 700, failed: 1, waits: [0, 0, 0, 0, 100] })] })
    await Promise.all(Array.from({ length: 8 }, () => workMinutes.fold(store)))
    expect(await workMinutes.fold(store)).toBe(0)
    expect(await sums()).toEqual([{ ago: 2, done: 1_200, refused: 3, failed: 1, p95: 250 }])
  })

  it('takes what comes late, and repeats of a heartbeat change nothing', async () => {
    const [a, b] = [worker(), worker()]
    const kind = 'transaction-batch'
    await processes.see(store, { ...a, work: [workOf(3, { kind, done: 10 })] })
    await workMinutes.fold(store)
    const late = { ...b, work: [workOf(3, { kind, done: 5 })] }
    for (let n = 0; n < 3; n++) {
      await processes.see(store, late)
      await workMinutes.fold(store)
    }
    expect(await sums(kind)).toEqual([{ ago: 3, done: 15, refused: 0, failed: 0, p95: null }])
  })

  it('keeps the share of a worker that has ended, or that died', async () => {
    const [a, b] = [worker(), worker()]
    const kind = 'report'
    await processes.see(store, { ...a, work: [] })
    await processes.tellWork(store, a.processId, [workOf(1, { kind, done: 2 })])
    await processes.leave(store, a)
    await processes.see(store, { ...b, work: [workOf(1, { kind, done: 1 })] })
    await retention.sweep(store, 8, Date.now())
    await workMinutes.fold(store)
    expect(await sums(kind)).toMatchObject([{ done: 3 }])
    // Its row goes when none of its minutes is summed any more.
    await store.query({
      text: `update tokenmill.process set ended_at = now() - interval '16 minutes' where ended_at is not null`,
    })
    await retention.sweep(store, 8, Date.now())
    expect((await store.query({ text: 'select process_id from tokenmill.process' })).count).toBe(1)
  })

  it('that isn’t over, or is too old for every heartbeat to hold it, is left as it is', async () => {
    const kind = 'webhook'
    const running = { kind, done: 1, minute: Math.floor(Date.now() / 60_000) }
    await processes.see(store, { ...worker(), work: [{ ...workOf(0), ...running }, workOf(9, { kind, done: 7 })] })
    await workMinutes.fold(store)
    expect(await sums(kind)).toEqual([])
  })

  it('is kept for 8 days', async () => {
    for (const days of [7, 9])
      await store.query({
        text: `insert into tokenmill.work_minute (minute, kind, done, refused, failed)
values (date_trunc('minute', now()) - make_interval(days => $1), 'act', 1, 0, 0)`,
        values: [days],
      })
    expect((await retention.sweep(store, 8, Date.now())).minutes).toBe(1)
    expect(await sums('act')).toHaveLength(1)
  })

  it('is said by workers alone', async () => {
    const said = store.query({
      text: `insert into tokenmill.process (process_id, role, host, version, connections, work)
values ($1, 'gateway', 'h', '1', 1, '[{}]')`,
      values: [randomUUID()],
    })
    await expect(said).rejects.toMatchObject({ cause: { constraint: 'only_workers_work' } })
  })
})

describe('what the scheduler saw', () => {
  const checksNow = async () =>
    (
      await store.query<{ name: string; state: string; since: number }>({
        text: 'select name, state, since from tokenmill.watch_check order by name',
      })
    ).rows
  const check = (name: string, state: watched.WatchedCheck['state']) => ({ name, state, says: 'x', next: null })

  it('says since when a check is in its state, and forgets checks that are not made any more', async () => {
    await watched.writeChecks(store, [check('a', 'well'), check('b', 'warning')])
    const [a, b] = await checksNow()
    await watched.writeChecks(store, [check('a', 'critical'), check('b', 'warning')])
    const [laterA, laterB] = await checksNow()
    expect(laterA?.since).toBeGreaterThan(a?.since ?? Number.POSITIVE_INFINITY)
    expect(laterB).toEqual(b)
    await watched.writeChecks(store, [check('b', 'well')])
    expect(await checksNow()).toMatchObject([{ name: 'b', state: 'well' }])
  })

  it('is the worst of the minute; a queue server that does not answer leaves what was seen before', async () => {
    await watched.writeMinute(store, { outboxMs: 50, queued: { interactiveMs: 900, failed: 2 } })
    await watched.writeMinute(store, { outboxMs: 10, queued: { interactiveMs: 100, failed: 0 } })
    await watched.writeMinute(store, { outboxMs: 20, queued: undefined })
    const { rows } = await store.query({
      text: `select max(interactive_ms)::integer as wait, max(failed) as failed, max(outbox_ms)::integer as outbox,
  (array_agg(outbox_last_ms order by minute desc))[1]::integer as last from tokenmill.watch_minute`,
    })
    expect(rows).toEqual([{ wait: 900, failed: 2, outbox: 50, last: 20 }])
  })
})
