// A job's receipt is found and claimed by its key, on a store of this release, and on one that comes from release 0.3,
// whose workers may still write receipts without keys.
import { randomBytes, randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as receiptKeys from '../../src/store/job/receipt-keys.ts'
import type { NewReceipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { LostRace, openStore, type Store } from '../../src/store/pool.ts'
import * as retention from '../../src/store/retention.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { CODER } from './coder.ts'

const DAY_MS = 86_400_000
let database: FreshDatabase
let store: Store
let client: Client
beforeEach(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 24 })
  client = new Client({ connectionString: database.url })
  await client.connect()
})
afterEach(async () => {
  await client.end()
  await store.close()
  await database.drop()
})

function receiptOf(receiptId: string, more: Partial<NewReceipt> = {}): NewReceipt {
  return {
    receiptId,
    entityId: null,
    clientId: 'c',
    iss: 'c',
    kind: 'token-create',
    jti: receiptId,
    requestDigest: randomBytes(32),
    digestVersion: 1,
    envelopeDigest: randomBytes(32),
    answers: randomBytes(32),
    replyTo: null,
    reference: null,
    status: 'SUCCEEDED',
    code: 200,
    outcome: 'CREATED',
    refusal: null,
    tokenId: randomUUID(),
    batchNo: null,
    chunk: null,
    counts: null,
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: 1,
    reversal: null,
    attempt: 1,
    acceptedAt: 1_000,
    completedAt: 2_000,
    ...more,
  }
}

const rowsOf = async <R extends object>(text: string, values: unknown[] = []) =>
  (await client.query<R>(text, values)).rows
const keyOf = async (id: string) =>
  (
    await rowsOf<{ day: string | null; revision: number }>(
      'select day::text, revision from tokenmill.receipt_key where receipt_id = $1',
      [id],
    )
  )[0]
const claim = (id: string, more: Partial<NewReceipt> = {}) =>
  store.transaction(db => receipts.insertAll(db, CODER, [receiptOf(id, more)]), { lock: id })
/** As `answerWithoutReceipt` of the line. */
const answer = (id: string) =>
  store.transaction(
    async db => {
      const revision = (await receipts.find(db, id)) ? 0 : await receiptKeys.countAnswer(db, id)
      const row = { clientId: 'c', replyTo: null, resultId: randomUUID(), receiptId: id, revision, body: '{}' }
      await outbox.insert(db, CODER, row)
      return revision
    },
    { lock: id },
  )

const dayAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)

async function makeWeek(days: number): Promise<void> {
  await client.query(
    `select tokenmill.make_week(week, date_trunc('week', $1::date)::date)
from unnest(array['receipt', 'outbox']) as week`,
    [dayAgo(days)],
  )
}

/** Writes a receipt of a day, without its key. */
async function writeReceipt(id: string, day: string): Promise<void> {
  await client.query(
    `insert into tokenmill.receipt (day, revision, receipt_id, client_id, iss, kind, jti, request_digest, envelope_digest, status, code,
  attempt, accepted_at, completed_at)
values ($2, 1, $1, 'c', 'c', 'token-create', 'j', '\\x01', '\\x01', 'SUCCEEDED', 200, 1, now(), now())`,
    [id, day],
  )
}

describe('the key of a receipt', () => {
  it('is claimed once, by however many transactions at once, with the lock and without it', async () => {
    for (const lock of [true, false]) {
      const id = randomUUID()
      const ends = await Promise.allSettled(
        Array.from({ length: 20 }, () =>
          store.transaction(db => receipts.insertAll(db, CODER, [receiptOf(id)]), lock ? { lock: id } : {}),
        ),
      )
      const lost = ends.filter(end => end.status === 'rejected')
      expect(lost).toHaveLength(19)
      for (const { reason } of lost) expect(reason).toBeInstanceOf(LostRace)
      expect(await rowsOf('select from tokenmill.receipt where receipt_id = $1', [id])).toHaveLength(1)
      expect(await rowsOf('select from tokenmill.outbox where receipt_id = $1', [id])).toHaveLength(1)
    }
  })

  it('is claimed for a list in one statement, of which those that are known are left out', async () => {
    const [known, one, other] = [randomUUID(), randomUUID(), randomUUID()]
    await claim(known)
    const written = await store.transaction(db =>
      receipts.insertUnclaimed(
        db,
        CODER,
        [one, known, other].map(id => receiptOf(id)),
      ),
    )
    expect([...written.keys()].sort()).toEqual([one, other].sort())
    const found = await receipts.findAll(store, [other, randomUUID(), known, one])
    expect(found.map(({ receiptId }) => receiptId)).toEqual([other, known, one])
    const [again] = await receipts.findAll(store, [known])
    expect(again).toMatchObject({ receiptId: known, day: dayAgo(0), revision: 1 })
  })

  it('counts the answers before the receipt, which gets the next number, and none after it', async () => {
    const id = randomUUID()
    expect([await answer(id), await answer(id)]).toEqual([1, 2])
    expect(await receipts.find(store, id)).toBeUndefined()
    expect(await claim(id)).toMatchObject([{ revision: 3 }])
    expect(await answer(id)).toBe(0)
    await expect(claim(id)).rejects.toBeInstanceOf(LostRace)
    const cancelled = randomUUID()
    await answer(cancelled)
    await store.transaction(db => receipts.insertCancelled(db, CODER, receiptOf(cancelled, { status: 'CANCELLED' })))
    expect(await receipts.find(store, cancelled)).toMatchObject({ status: 'CANCELLED', revision: 2 })
    const twice = store.transaction(db => receipts.insertCancelled(db, CODER, receiptOf(cancelled)))
    await expect(twice).rejects.toBeInstanceOf(LostRace)
  })

  it('stays with a chunk whose receipt is revised, and a revision of one that was read before loses', async () => {
    const id = randomUUID()
    await claim(id, { kind: 'token-batch', batchNo: 1, chunk: 0, counts: null, failedRecords: 2 })
    const read = await receipts.find(store, id)
    if (!read) throw new Error('it was written')
    const revise = () =>
      store.transaction(db => receipts.revise(db, CODER, read, { ...read, answers: null, failedRecords: 0 }), {
        lock: id,
      })
    expect(await revise()).toMatchObject({ revision: 2 })
    await expect(revise()).rejects.toBeInstanceOf(LostRace)
    expect(await receipts.find(store, id)).toMatchObject({ revision: 2, failedRecords: 0, day: read.day })
  })

  it('is not left behind by a transaction that rolls back', async () => {
    const id = randomUUID()
    const crash = store.transaction(async db => {
      await receipts.insertAll(db, CODER, [receiptOf(id)])
      throw new Error('a crash')
    })
    await expect(crash).rejects.toThrow('a crash')
    expect(await keyOf(id)).toBeUndefined()
    expect(await claim(id)).toMatchObject([{ revision: 1 }])
  })
})

describe('retention', () => {
  /** Inserts a receipt of a week that ended so many days ago. */
  async function oldReceipt(days: number): Promise<string> {
    const id = randomUUID()
    await makeWeek(days)
    await writeReceipt(id, dayAgo(days))
    await client.query('insert into tokenmill.receipt_key (receipt_id, day, revision) values ($1, $2, 1)', [
      id,
      dayAgo(days),
    ])
    return id
  }

  it('takes keys with their receipts, and a job whose receipt is gone is a new one', async () => {
    const [old, kept] = [await oldReceipt(120), await oldReceipt(30)]
    expect((await receipts.findAll(store, [old, kept])).map(({ receiptId }) => receiptId)).toEqual([old, kept])
    await retention.sweep(store, 90, Date.now())
    expect([await keyOf(old), await keyOf(kept)]).toEqual([undefined, { day: dayAgo(30), revision: 1 }])
    expect((await receipts.findAll(store, [old, kept])).map(({ receiptId }) => receiptId)).toEqual([kept])
    expect(await claim(old)).toMatchObject([{ revision: 1 }])
    await expect(claim(kept)).rejects.toBeInstanceOf(LostRace)
    await retention.sweep(store, 90, Date.now())
    expect(await receipts.find(store, old)).toMatchObject({ day: dayAgo(0) })
  })

  it('removes them page by page, and goes on where a crash left receipts without keys', async () => {
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) ids.push(await oldReceipt(120))
    const other = await oldReceipt(30)
    // Another transaction reads the week's partition, so it can't be dropped.
    await client.query('begin')
    await client.query(`select from tokenmill.receipt where day = $1`, [dayAgo(120)])
    const sweep = await retention.sweep(store, 90, Date.now())
    expect(sweep.partitions.filter(name => name.startsWith('receipt'))).toEqual([])
    await client.query('commit')
    expect(await rowsOf('select receipt_id from tokenmill.receipt_key')).toEqual([{ receipt_id: other }])
    const [again = ''] = ids
    expect(await receipts.findAll(store, ids)).toEqual([])
    expect(await claim(again)).toMatchObject([{ revision: 1 }])
    const next = await retention.sweep(store, 90, Date.now())
    expect(next.partitions.some(name => name.startsWith('receipt'))).toBe(true)
    expect((await receipts.findAll(store, ids)).map(({ receiptId, day }) => [receiptId, day])).toEqual([
      [again, dayAgo(0)],
    ])
    expect(await rowsOf('select from tokenmill.receipt_key')).toHaveLength(2)
  })

  it('erases a week in pages of any size', async () => {
    for (let n = 0; n < 7; n += 1) await oldReceipt(120)
    const kept = await oldReceipt(30)
    const at = Math.floor((Date.now() / DAY_MS - 120 - 4) / 7) * 7 + 4
    await receiptKeys.eraseWeek(store, new Date(at * DAY_MS).toISOString().slice(0, 10), 2)
    expect(await rowsOf('select receipt_id from tokenmill.receipt_key')).toEqual([{ receipt_id: kept }])
  })

  it('takes a key whose receipt the scheduler of another release has dropped for no claim', async () => {
    const [one, other, third] = [randomUUID(), randomUUID(), randomUUID()]
    for (const id of [one, other, third])
      await client.query(`insert into tokenmill.receipt_key (receipt_id, day, revision) values ($1, '2020-01-06', 4)`, [
        id,
      ])
    expect(await receipts.findAll(store, [one, other])).toEqual([])
    expect(await claim(one)).toMatchObject([{ revision: 1 }])
    await store.transaction(db => receipts.insertCancelled(db, CODER, receiptOf(other)), { lock: other })
    expect(await answer(third)).toBe(5)
    expect((await receipts.findAll(store, [one, other])).map(({ day }) => day)).toEqual([dayAgo(0), dayAgo(0)])
  })

  it('forgets how often a job without a receipt was answered when receipts of that day are gone', async () => {
    const [old, fresh] = [randomUUID(), randomUUID()]
    for (const id of [old, fresh]) await answer(id)
    await client.query('update tokenmill.receipt_key set answered_on = current_date - 92 where receipt_id = $1', [old])
    expect(await retention.sweep(store, 90, Date.now())).toMatchObject({ answers: 1 })
    expect([await answer(old), await answer(fresh)]).toEqual([1, 2])
  })
})

it('an old answer that becomes a receipt meanwhile keeps its key', async () => {
  const id = randomUUID()
  await answer(id)
  await client.query('update tokenmill.receipt_key set answered_on = current_date - 92 where receipt_id = $1', [id])
  await client.query('begin')
  await client.query('update tokenmill.receipt_key set day = current_date, answered_on = null where receipt_id = $1', [
    id,
  ])
  const erased = receiptKeys.eraseAnswers(store, Date.now() - 90 * 86_400_000, 100)
  await new Promise(resolve => setTimeout(resolve, 200))
  await client.query('commit')
  await erased
  expect(await keyOf(id)).toMatchObject({ day: dayAgo(0) })
})
