// Workers of one process on the PostgreSQL engine have one listening connection.
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { shareListening } from '../../src/queue/shared-listen.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { keptLog, openPool, recorder, upgrade } from './bundle.ts'

const NAMES = ['l-first', 'l-second', 'l-third']

describe('the workers of a process', () => {
  let database: FreshDatabase
  let pool: pg.Pool
  let queues: Queues
  beforeAll(async () => {
    database = await freshDatabase({ empty: true })
    await upgrade(database.url)
    pool = openPool(database.url, 30)
    queues = await openPostgres(pool, { prefix: 'x', lockMs: 30_000, log: keptLog().log })
  })
  afterAll(async () => {
    await queues?.close()
    await pool?.end()
    await database?.drop()
  })

  async function listeners(): Promise<number[]> {
    // An idle connection shows its last statement, which may be this one.
    const { rows } = await pool.query<{ pid: number }>(`select pid from pg_stat_activity
      where datname = current_database() and query ~* 'listen bullmq_jobs' and query !~* '^select'`)
    return rows.map(({ pid }) => pid)
  }

  async function started() {
    const { seen, ids, handler } = recorder()
    const workers = NAMES.map(name => queues.work(name, handler, { concurrency: 2, onError: () => {} }))
    await Promise.all(workers.map(worker => worker.ready))
    await until(async () => (await listeners()).length > 0)
    return { seen, ids, close: () => Promise.all(workers.map(worker => worker.close(5_000))) }
  }

  /** Adds one job after the other and waits for each: far less than the 5 s after which a worker looks by itself. */
  async function expectWakeUps(seen: unknown[], from: number): Promise<void> {
    for (const [index, name] of NAMES.entries()) {
      const before = seen.length
      await queues.add(name, { id: `j_${from + index}`, data: {} })
      await until(() => seen.length > before, { ms: 2_000 })
    }
  }

  it('are woken by one listening connection, and each is seen by its name', async () => {
    const { seen, close } = await started()
    await expectWakeUps(seen, 0)
    await expectWakeUps(seen, 10)
    expect(await listeners()).toHaveLength(1)
    for (const name of NAMES) expect(await queues.workersOf(name)).toBe(1)
    await close()
  })

  it('listen again when that connection is lost', async () => {
    const { seen, close } = await started()
    await expectWakeUps(seen, 20)
    const [lost] = await listeners()
    await pool.query('select pg_terminate_backend($1)', [lost])
    await until(async () => {
      const now = await listeners()
      return now.length === 1 && now[0] !== lost
    })
    await until(async () => (await Promise.all(NAMES.map(name => queues.workersOf(name)))).every(n => n === 1))
    await expectWakeUps(seen, 30)
    await expectWakeUps(seen, 40)
    expect(await listeners()).toHaveLength(1)
    await close()
  })

  it('leave no listening connection when the last of them closes', async () => {
    const { seen, close } = await started()
    await expectWakeUps(seen, 50)
    await close()
    await until(async () => (await listeners()).length === 0)
    expect(pool.waitingCount).toBe(0)
    expect(pool.totalCount - pool.idleCount).toBe(0)
  })
})

describe('a client that is lost while the common connection opens', () => {
  it('does not listen, and is told so', async () => {
    const opened = Promise.withResolvers<void>()
    let opening = 0
    const client = () => ({
      ...Object.fromEntries(
        ['on', 'removeListener', 'removeAllListeners', 'emit', 'release'].map(name => [name, () => {}]),
      ),
      query: async () => ({ rows: [] }),
    })
    const connect = shareListening(async () => {
      opening += 1
      if (opening === 2) await opened.promise
      return client()
    })
    const own = (await connect()) as { query(text: string): Promise<unknown>; release(destroy: boolean): void }
    const said = own.query('LISTEN bullmq_jobs')
    own.release(true)
    opened.resolve()
    await expect(said).rejects.toThrow('lost before it listened')
  })
})
