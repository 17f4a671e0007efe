// What PostgreSQL answers instead of working, as a cause that the store keeps: real settings of a real server.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { Fault } from '../../src/errors.ts'
import { openHealth } from '../../src/health.ts'
import { openRegistry } from '../../src/metrics.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { tryWrites, watched } from '../../src/store/server.ts'
import { keptLog } from '../queue/bundle.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

let database: FreshDatabase
let owner: Store
let name: string
let user: string
const { log, lines } = keptLog()
const opened: Store[] = []

/** A store with the rights of a user of its own. */
function openAsUser(connectionsMax = 1): Store {
  const url = new URL(database.url)
  url.username = user
  url.password = 'secret'
  const store = openStore(url.href, { log, connectionsMax })
  opened.push(store)
  return store
}

beforeAll(async () => {
  database = await freshDatabase()
  owner = openStore(database.url, { log, connectionsMax: 2 })
  name = new URL(database.url).pathname.slice(1)
  user = `user_${name}`
  for (const text of [
    `create role "${user}" login password 'secret'`,
    'create table public.card (a int)',
    `grant select, insert on public.card to "${user}"`,
    `create function public.fill() returns trigger language plpgsql as
      'begin raise exception using errcode = ''disk_full'', message = ''could not extend file "base/1/2": No space left on device''; end'`,
  ])
    await owner.query({ text })
})
afterAll(async () => {
  await Promise.all(opened.map(store => store.close()))
  for (const text of [`drop owned by "${user}"`, `drop role "${user}"`]) await owner?.query({ text })
  await owner?.close()
  await database?.drop()
})
beforeEach(() => {
  lines.length = 0
})

const insert = (store: Store) => store.query({ text: 'insert into public.card values (1)' })

it('is read-only: a fault that waits, and not ready, in the word of the server, until it is over', async () => {
  const store = openAsUser()
  const health = openHealth(openRegistry({ role: 'test' }), { store: watched(store) })
  expect(await health.reasons()).toEqual([])
  await owner.query({ text: `alter role "${user}" set default_transaction_read_only = on` })
  await owner.query({
    text: 'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
    values: [user],
  })
  await until(() => insert(store).catch(error => error.cause?.code === '25006'))
  await expect(insert(store)).rejects.toMatchObject({ code: 'store_away' })
  expect(store.troubles.now()).toMatchObject({ code: '25006', isRefused: true })
  expect(await health.reasons()).toEqual([expect.stringMatching(/^the store: PostgreSQL is read-only: .*\(25006/)])
  const page = JSON.stringify(await health.snapshot())
  expect(page).toMatch(/"value":1,"labels":\{"dependency":"store","code":"25006"/)
  expect(lines.filter(line => line.includes('25006'))).toHaveLength(1)
  await owner.query({ text: `alter role "${user}" reset default_transaction_read_only` })
  await owner.query({
    text: 'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
    values: [user],
  })
  await until(async () => (await health.reasons()).length === 0)
  expect(JSON.stringify(await health.snapshot())).not.toContain('25006')
})

it('has no connection left for this user', async () => {
  await owner.query({ text: `alter role "${user}" connection limit 1` })
  const store = openAsUser(2)
  const held = await store.pool.connect().catch(() => undefined)
  try {
    await expect(Promise.all([tryWrites(store), tryWrites(store)])).rejects.toMatchObject({ code: 'store_busy' })
    // The user's name has chance digits, and many in a row are masked.
    const says = expect.stringContaining('too many connections for role "user_test_')
    expect(store.troubles.now()).toMatchObject({ code: '53300', says })
  } finally {
    held?.release()
    await owner.query({ text: `alter role "${user}" connection limit -1` })
  }
})

it('has no room on its disk, which a small write may not show', async () => {
  const store = openAsUser()
  await owner.query({ text: 'create trigger fill before insert on public.card execute function public.fill()' })
  await expect(store.transaction(db => db.query({ text: 'insert into public.card values (1)' }))).rejects.toMatchObject(
    {
      code: 'store_busy',
    },
  )
  await tryWrites(store)
  expect(store.troubles.now()).toMatchObject({ code: '53100', says: expect.stringContaining('No space left') })
  await owner.query({ text: 'drop trigger fill on public.card' })
})

it('denies a right, or does not admit the user: no defect of tokenmill', async () => {
  const store = openAsUser()
  await owner.query({ text: `revoke insert on public.card from "${user}"` })
  await expect(insert(store)).rejects.toMatchObject({ code: '42501' })
  expect(store.troubles.now()).toMatchObject({ code: '42501', says: expect.stringContaining('permission denied for') })
  await owner.query({ text: `grant insert on public.card to "${user}"` })
  const other = openAsUser()
  await insert(other)
  await owner.query({ text: `alter role "${user}" password 'changed'` })
  await owner.query({
    text: 'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
    values: [user],
  })
  const failed = (code: string) =>
    insert(other).catch(
      error =>
        error instanceof Fault && error.code === 'store_away' && (error.cause as { code?: string }).code === code,
    )
  await until(() => failed('28P01').then(it => it === true))
  await owner.query({ text: `alter role "${user}" password 'secret'` })
})
