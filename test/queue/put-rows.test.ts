// Several jobs that are added by one statement on the PostgreSQL engine.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Queues } from '../../src/queue/engine.ts'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { keptLog, openPool, upgrade } from './bundle.ts'

describe('jobs added by one statement', () => {
  let database: FreshDatabase
  let pool: pg.Pool
  let queues: Queues
  beforeAll(async () => {
    database = await freshDatabase({ empty: true })
    await upgrade(database.url)
    pool = openPool(database.url)
    queues = await openPostgres(pool, { prefix: 'x', lockMs: 30_000, log: keptLog().log })
  })
  afterAll(async () => {
    await queues?.close()
    await pool?.end()
    await database?.drop()
  })
  const jobs = () => [
    { id: 'j_1', data: { text: 'a "quoted" \\ {text}, ü', none: null } },
    { id: 'j_2', data: 'text', priority: 10 },
    { id: 'j_3', data: [1, 2], redeliver: true },
  ]

  it('have the rows and the events of jobs that are added one by one', async () => {
    for (const job of jobs()) await queues.add('p-alone', job)
    await queues.addBulk('p-together', jobs())
    const rowsOf = async (queue: string) => {
      const rows = await pool.query('select * from bullmq.job where queue = $1 order by seq', [queue])
      const events = await pool.query('select event, data from bullmq.event where queue = $1 order by id', [queue])
      const without = { queue: undefined, name: undefined, seq: undefined, added_at_ms: undefined }
      return {
        rows: rows.rows.map(row => ({ ...row, ...without })),
        events: events.rows.map(({ event, data }) => ({ event, id: data.jobId })),
      }
    }
    expect(await rowsOf('p-together')).toEqual(await rowsOf('p-alone'))
    expect((await rowsOf('p-together')).rows.map(({ id }) => id)).toEqual(['j_1', 'j_2', 'j_3'])
  })

  it('change no table of the catalogue', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(`create function public.refuse() returns event_trigger language plpgsql as
      'begin raise exception ''a statement changed the catalogue''; end'`)
    await client.query('create event trigger refuse on ddl_command_start execute function public.refuse()')
    try {
      await queues.addBulk('p-catalogue', jobs())
      expect(await queues.depth('p-catalogue')).toMatchObject({ waiting: 3 })
    } finally {
      await client.query('drop event trigger refuse')
      await client.end()
    }
  })

  it('are all on the queue or none', async () => {
    const refused = [...jobs(), { id: 'j_4', data: 'a\u0000b' }]
    await expect(queues.addBulk('p-none', refused)).rejects.toMatchObject({ code: 'data' })
    expect(await queues.depth('p-none')).toMatchObject({ waiting: 0 })
  })
})
