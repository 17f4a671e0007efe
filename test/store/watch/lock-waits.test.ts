// Who holds what others wait for, as every user of the store may see it: real sessions of a real server.
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeHolder, judgeLocks } from '../../../producers/operate/checks/locks.ts'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { holdersOf, listHolders, longestWait } from '../../../src/store/watch/lock-waits.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

let database: FreshDatabase
let store: Store
let user: string
const sessions: pg.Client[] = []

async function openAs(name: string, url = database.url): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name })
  client.on('error', () => {})
  await client.connect()
  sessions.push(client)
  return client
}

beforeAll(async () => {
  database = await freshDatabase()
  const admin = await openAs('set-up')
  user = `watcher_${new URL(database.url).pathname.slice(1)}`
  await admin.query(`create role "${user}" login password 'secret'`)
  await admin.query('create table public.card (a int primary key, b int)')
  await admin.query('insert into public.card values (1, 1)')
  const url = new URL(database.url)
  url.username = user
  url.password = 'secret'
  // A user without any right on what is locked, nor one to see what others do.
  store = openStore(url.href, { log: openLog('silent'), connectionsMax: 1 })
})
afterAll(async () => {
  await store?.close()
  const [admin] = sessions
  await admin?.query(`drop role "${user}"`)
  await Promise.all(sessions.map(client => client.end()))
  await database?.drop()
})

const found = () => until(async () => (await listHolders(store, 0))[0])

it('are the session at the beginning of the line, not one that waits as well', async () => {
  const [idle, ddl, worker] = [await openAs('psql of a colleague'), await openAs('migration'), await openAs('worker')]
  await idle.query('begin')
  await idle.query('select from public.card')
  const altered = ddl.query('alter table public.card add column c int').catch(error => error)
  await until(async () => (await listHolders(store, 0)).length === 1)
  const read = worker.query('select from public.card')
  const holders = await until(async () => {
    const all = await listHolders(store, 0)
    return all[0]?.waiting === 2 && all
  })
  expect(holders).toMatchObject([
    {
      application: 'psql of a colleague',
      relations: ['public.card'],
      mode: 'AccessShareLock',
      state: null,
      heldMs: null,
    },
  ])
  expect(await longestWait(store)).toBeGreaterThan(0)
  expect(describeHolder(holders[0] as never)).toMatch(
    /^process \d+ of PostgreSQL \(user \S+, psql of a colleague\) has held public\.card \(AccessShareLock\) for .* or longer; 2 sessions wait for it/,
  )
  await idle.query('rollback')
  await altered
  await read
  expect(await listHolders(store, 0)).toEqual([])
  expect(await longestWait(store)).toBe(0)
})

it('are named for a row and for a whole table', async () => {
  const [holder, waiter] = [await openAs('holds'), await openAs('waits')]
  for (const hold of ['update public.card set b = 2', 'lock table public.card']) {
    await holder.query('begin')
    await holder.query(hold)
    const waits = waiter.query('update public.card set b = 3')
    expect(await found()).toMatchObject({ application: 'holds', relations: ['public.card'], waiting: 1 })
    await holder.query('rollback')
    await waits
  }
})

it('of lines that meet is each first one, and of a circle all', () => {
  const row = (pid: number, blocker: number, relation: string | null = 't') => ({
    pid,
    blocker,
    relation,
    waitMs: pid * 1_000,
    user: 'u',
    application: null,
    state: null,
    heldMs: null,
    mode: null,
  })
  const pids = (rows: Parameters<typeof holdersOf>[0]) => holdersOf(rows).map(({ pid, waiting }) => [pid, waiting])
  expect(pids([row(1, 9), row(2, 1), row(3, 2), row(4, 8)])).toEqual([
    [8, 1],
    [9, 3],
  ])
  expect(pids([row(1, 2), row(2, 1)]).length).toBeGreaterThan(0)
  expect(pids([row(1, 0)])).toEqual([[0, 1]])
  expect(judgeLocks(holdersOf([row(1, 0)]))).toMatchObject({
    state: 'warning',
    next: expect.stringContaining('prepared'),
  })
  expect(judgeLocks(holdersOf([row(30, 7)]))).toMatchObject({
    state: 'critical',
    next: expect.stringContaining('pg_terminate_backend(7)'),
  })
  expect(judgeLocks([])).toMatchObject({ state: 'well' })
})
