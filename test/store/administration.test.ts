import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../src/errors.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as clientUsers from '../../src/store/access/client-users.ts'
import * as clients from '../../src/store/access/clients.ts'
import { eraseOldScratch } from '../../src/store/batch/dry-runs.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as replyQueues from '../../src/store/job/reply-queues.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import * as retention from '../../src/store/retention.ts'
import * as binRanges from '../../src/store/token/bin-ranges.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { CODER } from './coder.ts'

const DAY_MS = 86_400_000
const CLIENT = `c${'a'.repeat(25)}`
const USER = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const RECEIPT = '33333333-2222-4333-8444-555555555555'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: pino({ level: 'silent' }), connectionsMax: 10 })
  const client = {
    clientId: CLIENT,
    name: 'shop',
    userId: USER,
    entities: [USER],
    roles: [],
    alg: 'EdDSA',
    system: false,
  }
  await clients.insert(store, { ...client, alg: 'EdDSA', apiKeyHash: { hash: Buffer.from('hash'), keyVersion: 3 } })
})
afterAll(async () => {
  await store.close()
  await database.drop()
})

describe('a client', () => {
  it('stands once, and its second insert changes nothing', async () => {
    const other = { clientId: CLIENT, name: 'other', userId: USER, entities: [], roles: [], alg: null, system: false }
    expect(await clients.insert(store, { ...other, apiKeyHash: null })).toBe(false)
    expect(await clients.find(store, CLIENT)).toMatchObject({ name: 'shop', entities: [USER], revokedAt: null })
    expect(await clients.find(store, 'unknown')).toBeUndefined()
  })

  it('is found by its user, with the hash of its API key', async () => {
    const found = await clientUsers.findByUser(store, USER)
    expect(found).toMatchObject({
      client: { clientId: CLIENT },
      apiKeyHash: { hash: Buffer.from('hash'), keyVersion: 3 },
    })
    expect(await clientUsers.findByUser(store, '00000000-0000-0000-0000-000000000000')).toBeUndefined()
  })

  it('has keys that are told apart by state, and a revoked one is never active again', async () => {
    const key = { clientId: CLIENT, kid: 'k1', alg: 'EdDSA', publicJwk: { kty: 'OKP' } } as const
    expect(await clients.insertKey(store, key)).toBe(true)
    expect(await clients.revokeKey(store, CLIENT, 'k1')).toBe(true)
    expect(await clients.insertKey(store, key)).toBe(false)
    expect(await clients.retireKey(store, CLIENT, 'k1', Date.now())).toBe(false)
    expect(await clients.findClientKeys(store, CLIENT)).toMatchObject([
      { kid: 'k1', state: 'REVOKED', validUntil: null },
    ])
  })
})

describe('reply queues', () => {
  it('are at most 64 a client, also when asked for at once, and a known one is always granted', async () => {
    const names = Array.from({ length: 80 }, (_, n) => `q${n}`)
    const granted = await Promise.all(names.map(name => replyQueues.register(store, CLIENT, name)))
    expect(granted.filter(Boolean)).toHaveLength(replyQueues.REPLY_QUEUES_MAX)
    const kept = await replyQueues.list(store, CLIENT)
    expect(kept).toHaveLength(64)
    const [first] = kept
    expect(await replyQueues.register(store, CLIENT, first?.replyTo ?? '')).toBe(true)
    expect(await replyQueues.remove(store, CLIENT, first?.replyTo ?? '')).toBe(true)
    expect(await replyQueues.remove(store, CLIENT, first?.replyTo ?? '')).toBe(false)
    expect(await replyQueues.register(store, CLIENT, 'again')).toBe(true)
  })

  it('asked for twice at once stand once and are granted twice', async () => {
    await replyQueues.remove(store, CLIENT, 'again')
    const granted = await Promise.all(Array.from({ length: 5 }, () => replyQueues.register(store, CLIENT, 'same')))
    expect(granted).toEqual([true, true, true, true, true])
    expect((await replyQueues.list(store, CLIENT)).filter(({ replyTo }) => replyTo === 'same')).toHaveLength(1)
  })
})

describe('the BIN table', () => {
  it('keeps the id of a prefix when it says something else of it', async () => {
    await binRanges.saveAll(store, [{ prefix: '4571', brand: 'VISA', issuerName: 'A "bank", \\ and more' }])
    const [before] = await binRanges.findAll(store)
    expect(before).toMatchObject({ prefix: '4571', issuerName: 'A "bank", \\ and more' })
    expect(before).not.toHaveProperty('issuerCountry')
    const changed = { prefix: '4571', brand: 'VISA', issuerCountry: 'DNK', type: 'DEBIT' } as const
    expect(await binRanges.saveAll(store, [changed])).toBe(1)
    expect(await binRanges.saveAll(store, [changed])).toBe(0)
    expect(await binRanges.findAll(store)).toEqual([{ id: before?.id, ...changed }])
  })
})

describe('retention', () => {
  const weekOf = (name: string) => name.replace(/\D/g, '')
  const partitions = async (now: number) =>
    (await retention.findEnded(store, now + 400 * DAY_MS)).map(({ name }) => name)

  it('makes the weeks ahead, and several at once do not trip over each other', async () => {
    const later = Date.now() + 120 * DAY_MS
    await Promise.all(Array.from({ length: 4 }, () => retention.ensurePartitions(store, later)))
    const names = await partitions(later)
    expect(new Set(names).size).toBe(names.length)
    expect(names.filter(name => name.startsWith('receipt')).map(weekOf)).toEqual(
      names.filter(name => name.startsWith('outbox')).map(weekOf),
    )
  })

  it('drops weeks that are over for so long, but no result that was never told', async () => {
    const now = Date.now()
    await store.query({
      text: `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision) values (current_date, $1, $2, $3, 1)`,
      values: [CLIENT, USER, RECEIPT],
    })
    const days = (n: number) => now + n * DAY_MS
    const weekEnd = (Math.floor((now / DAY_MS - 4) / 7) * 7 + 4 + 7) * DAY_MS
    const inAWeek = weekEnd + retention.RETENTION.outboxDays * DAY_MS
    const first = await retention.sweep(store, 90, inAWeek)
    // Last week's partition is empty and is dropped; this week's holds a result that isn't published.
    expect(first.partitions.filter(name => name.startsWith('receipt'))).toEqual([])
    expect(first.partitions).toHaveLength(1)
    const told = await store.query({ text: `update tokenmill.outbox set state = 'SENT'` })
    expect(told.count).toBe(1)
    expect((await retention.sweep(store, 90, inAWeek)).partitions).toHaveLength(1)
    expect((await store.query({ text: 'select 1 from tokenmill.outbox' })).count).toBe(0)
    const inHundred = await retention.sweep(store, 90, days(100))
    expect(inHundred.partitions.filter(name => name.startsWith('receipt')).length).toBeGreaterThan(0)
    expect(
      (await retention.findEnded(store, days(100))).filter(
        ({ table, endedAt }) => table === 'receipt' && endedAt <= days(10),
      ),
    ).toEqual([])
  })

  it('forgets guesses and scratch rows after a day', async () => {
    await store.query({
      text: `insert into tokenmill.guess (client_id, token_scope, digits, misses, since)
select $1, $2, n::text, 1, now() - n * interval '10 hours' from generate_series(1, 4) as n`,
      values: [CLIENT, USER],
    })
    await store.query({
      text: `insert into tokenmill.scratch_run (run, version, created_at) values ('old', 1, now() - interval '2 days'), ('new', 1, now())`,
    })
    await store.query({
      text: `insert into tokenmill.scratch (run, fingerprint, chunk, row, created_at)
select run, lpad(n::text, 32, '0')::uuid, 0, '{}', now() - interval '1 hour' * hours
from (values ('old', 30), ('new', 1), ('without', 30)) as v(run, hours), generate_series(1, 7) as n`,
    })
    expect(await eraseOldScratch(store, Date.now() - DAY_MS, 3)).toBe(14)
    const { rows } = await store.query({ text: 'select distinct run from tokenmill.scratch' })
    expect(rows).toEqual([{ run: 'new' }])
    expect((await store.query({ text: 'select from tokenmill.scratch_run' })).count).toBe(1)
    const { guesses } = await retention.sweep(store, 90, Date.now())
    expect(guesses).toBe(2)
  })

  it('goes on where one of its steps fails, and says so', async () => {
    const old = `now() - interval '30 hours'`
    await store.query({ text: `update tokenmill.guess set since = ${old}` })
    const left = async () => (await store.query({ text: `select from tokenmill.guess where since < ${old}` })).count
    expect(await left()).toBeGreaterThan(0)
    const failing: Store = {
      ...store,
      query: statement =>
        /delete from tokenmill.(scratch|before_image)/.test(statement.text)
          ? Promise.reject(new Fault('deadline'))
          : store.query(statement),
    }
    await expect(retention.sweep(failing, 90, Date.now())).rejects.toThrow(Fault)
    expect(await left()).toBe(0)
  })

  it('destroys private halves 8 days after retirement, not before, and tells of it', async () => {
    const half = { wrappedPrivate: Buffer.from('sealed'), privateVersion: 1 }
    const key = { entityId: USER, type: 'pgp', publicKey: 'armor', ...half } as const
    for (const alias of ['active', 'retired']) await captureKeys.insert(store, { ...key, alias })
    expect(await captureKeys.insert(store, { ...key, alias: 'active' })).toBe(false)
    const { keyId = '' } = (await captureKeys.find(store, 'retired')) ?? {}
    expect(await captureKeys.retire(store, keyId, Date.now())).toBe(true)
    expect(await captureKeys.retire(store, keyId, Date.now())).toBe(false)
    const retiredBefore = Date.now() - retention.RETENTION.captureKeyDays * DAY_MS
    const in7Days = retiredBefore + 7.9 * DAY_MS
    expect(await captureKeys.destroyRetired(store, in7Days)).toBe(0)
    expect(await captureKeys.find(store, 'retired')).toMatchObject({ wrappedPrivate: key.wrappedPrivate })
    expect(await captureKeys.destroyRetired(store, in7Days + DAY_MS)).toBe(1)
    expect(await captureKeys.find(store, 'retired')).toMatchObject({ state: 'DESTROYED', wrappedPrivate: null })
    expect(await captureKeys.find(store, 'active')).toMatchObject({
      state: 'ACTIVE',
      wrappedPrivate: key.wrappedPrivate,
    })
    const { rows } = await store.query({
      text: `select action, subject from tokenmill.audit where actor = 'retention'`,
    })
    expect(rows).toEqual([{ action: 'capture-key.destroy', subject: 'retired/1' }])
  })
})

describe('what waits to be told', () => {
  it('is counted by queue, up to a bound, and holds no event', async () => {
    const [job, event] = ['3f2504e0-4f89-41d3-9a0c-0305e82c3301', '3f2504e0-4f89-41d3-9a0c-0305e82c3302']
    const answer = {
      clientId: CLIENT,
      receiptId: job,
      resultId: '3f2504e0-4f89-41d3-9a0c-0305e82c3303',
      revision: 1,
      body: null,
    }
    for (const replyTo of ['a', 'a', 'b', null]) await outbox.insert(store, CODER, { ...answer, replyTo })
    for (const replyTo of ['b', null])
      await outbox.insert(store, CODER, { ...answer, receiptId: event, resultId: event, replyTo, body: '{}' })
    const counts = ['a', 'b', 'c', null].map(replyTo => outbox.pendingOf(store, CLIENT, replyTo, 10))
    expect(await Promise.all(counts)).toEqual([2, 1, 0, 1])
    expect(await outbox.pendingOf(store, CLIENT, 'a', 1)).toBe(1)
  })
})
