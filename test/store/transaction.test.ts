// A transaction whose statements are sent without waiting: its caller gets the error of the statement that failed.
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { LostRace, openStore, type Store } from '../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

describe('a transaction', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
    // A constraint that two transactions at the same time may violate; a violation counts as a lost race.
    await store.query({ text: 'create table public.card (a int constraint one_current_scheme_token_per_token unique)' })
    await store.query({ text: 'insert into public.card values (1)' })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  it('says why its first statement failed, though a later one was waited for', async () => {
    const raced = store.transaction(async db => {
      const first = db.query({ text: 'insert into public.card values (1)' })
      first.catch(() => {})
      await db.query({ text: 'select 1' })
      await first
    })
    await expect(raced).rejects.toThrow(LostRace)
  })

  it('sends by one system call what it sends in one turn of the event loop', async () => {
    let calls = 0
    await store.query({ text: 'select 1' })
    const client = await store.pool.connect()
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    client.release()
    for (const name of ['_write', '_writev'] as const) {
      const send = stream[name]
      if (!send) throw new Error('a socket sends one piece or several')
      stream[name] = (...given: unknown[]) => {
        calls += 1
        return Reflect.apply(send, stream, given)
      }
    }
    const sums = await store.transaction(async db => {
      const found = await Promise.all([1, 2, 3, 4].map(n => db.query({ text: 'select $1::int as n', values: [n] })))
      expect(calls).toBe(1)
      return found.map(({ rows }) => rows)
    })
    expect(sums).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }], [{ n: 4 }]])
    expect(calls).toBe(2)
  })

  it('has something else done while its commit is under way, which may still fail', async () => {
    await store.query({ text: 'create table public.late (a int unique deferrable initially deferred)' })
    const done: string[] = []
    const write = (name: string, ...values: number[]) =>
      store.transaction(
        async db => {
          for (const value of values) await db.query({ text: 'insert into public.late values ($1)', values: [value] })
          return name
        },
        { meanwhile: result => done.push(result) },
      )
    expect(await write('kept', 1)).toBe('kept')
    await expect(write('twice', 2, 2)).rejects.toThrow()
    await expect(write('not a number', Number.NaN)).rejects.toThrow()
    expect(done).toEqual(['kept', 'twice'])
    expect((await store.query({ text: 'select a from public.late' })).rows).toEqual([{ a: 1 }])
  })

  it('is not taken for done where a statement failed that nobody waited for', async () => {
    const unheard = store.transaction(async db => {
      db.query({ text: 'insert into public.card values (2), (1)' }).catch(() => {})
      await new Promise(resolve => setImmediate(resolve))
      return 'done'
    })
    await expect(unheard).rejects.toThrow(LostRace)
    expect((await store.query({ text: 'select a from public.card' })).rows).toEqual([{ a: 1 }])
  })
})
