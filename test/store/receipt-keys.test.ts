// A job's receipt is found and claimed by its key, on a store of this release, and on one that comes from release 0.3,
// whose workers may still write receipts without keys.
import { randomBytes, randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as receiptKeys from '../../src/store/job/receipt-keys.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { LostRace, openStore, readSql, type Store } from '../../src/store/pool.ts'
import * as retention from '../../src/store/retention.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const DAY_MS = 86_400_000
const LOWEST = '00000000-0000-0000-0000-000000000000'

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

function receiptOf(receiptId: string, more: Partial<Receipt> = {}): Receipt {
  return {
    ...{ receiptId, entityId: null, clientId: 'c', iss: 'c', kind: 'token-create', jti: receiptId },
    requestDigest: randomBytes(32),
    ...{ digestVersion: 1, envelopeDigest: randomBytes(32), replyTo: null, reference: null, status: 'SUCCEEDED' },
    ...{ code: 200, outcome: 'CREATED', refusal: null, tokenId: randomUUID(), batchNo: null, chunk: null },
    ...{ counts: null, reasons: null, outcomes: null, failedRecords: 0, revision: 1, reversal: null, attempt: 1 },
    ...{ acceptedAt: 1_000, completedAt: 2_000, ...more },
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
const claim = (id: string, more: Partial<Receipt> = {}) =>
  store.transaction(db => receipts.insertAll(db, [receiptOf(id, more)]), { lock: id })
/** As `answerWithoutReceipt` of the line. */
const answer = (id: string) =>
  store.transaction(
    async db => {
      const revision = (await receipts.find(db, id)) ? 0 : await receiptKeys.countAnswer(db, id)
      const row = { clientId: 'c', replyTo: null, resultId: randomUUID(), receiptId: id, revision, body: '{}' }
      await outbox.insert(db, row)
      return revision
    },
    { lock: id },
  )

/** The statements by which workers of release 0.3 write a receipt and an answer without one. */
const FORMER_RECEIPT = `with given as (
  select $1::uuid as receipt_id, (select coalesce(max(o.revision), 0) + 1 from tokenmill.outbox as o where o.receipt_id = $1) as next
), written as (
  insert into tokenmill.receipt (day, revision, receipt_id, client_id, iss, kind, jti, request_digest, envelope_digest, status, code,
    attempt, accepted_at, completed_at)
  select $2::date, next, receipt_id, 'c', 'c', 'token-create', 'j', '\\x01', '\\x01', 'SUCCEEDED', 200, 1, now(), now() from given
  where not exists (select from tokenmill.receipt as r where r.receipt_id = given.receipt_id)
  returning receipt_id, revision
)
insert into tokenmill.outbox (day, client_id, receipt_id, revision) select $2::date, 'c', receipt_id, revision from written
returning revision`
const dayAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)

async function makeWeek(days: number): Promise<void> {
  await client.query(
    `select tokenmill.make_week(week, date_trunc('week', $1::date)::date)
from unnest(array['receipt', 'outbox']) as week`,
    [dayAgo(days)],
  )
}

async function formerReceipt(id: string, day = dayAgo(0)): Promise<number | undefined> {
  await client.query('begin')
  await client.query(
    `select pg_advisory_xact_lock((('x' || left(replace($1, '-', ''), 16))::bit(64)::bigint >> 1) & x'7fffffffffffffff'::bigint)`,
    [id],
  )
  const { rows } = await client.query<{ revision: number }>(FORMER_RECEIPT, [id, day])
  await client.query('commit')
  return rows[0]?.revision
}
async function formerAnswer(id: string): Promise<void> {
  await client.query(
    `insert into tokenmill.outbox (day, client_id, result_id, receipt_id, revision, body)
select current_date, 'c', gen_random_uuid(), $1, (select coalesce(max(revision), 0) + 1 from tokenmill.outbox where receipt_id = $1), '{}'`,
    [id],
  )
}

describe('the key of a receipt', () => {
  it('is claimed once, by however many transactions at once, with the lock and without it', async () => {
    for (const lock of [true, false]) {
      const id = randomUUID()
      const ends = await Promise.allSettled(
        Array.from({ length: 20 }, () =>
          store.transaction(db => receipts.insertAll(db, [receiptOf(id)]), lock ? { lock: id } : {}),
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
    await store.transaction(db => receipts.insertCancelled(db, receiptOf(cancelled, { status: 'CANCELLED' })))
    expect(await receipts.find(store, cancelled)).toMatchObject({ status: 'CANCELLED', revision: 2 })
    const twice = store.transaction(db => receipts.insertCancelled(db, receiptOf(cancelled)))
    await expect(twice).rejects.toBeInstanceOf(LostRace)
  })

  it('stays with a chunk whose receipt is revised, and a revision of one that was read before loses', async () => {
    const id = randomUUID()
    await claim(id, { kind: 'token-batch', batchNo: 1, chunk: 0, counts: null, failedRecords: 2 })
    const read = await receipts.find(store, id)
    if (!read) throw new Error('it was written')
    const revise = () => store.transaction(db => receipts.revise(db, { ...read, failedRecords: 0 }), { lock: id })
    expect(await revise()).toMatchObject({ revision: 2 })
    await expect(revise()).rejects.toBeInstanceOf(LostRace)
    expect(await receipts.find(store, id)).toMatchObject({ revision: 2, failedRecords: 0, day: read.day })
  })

  it('is not left behind by a transaction that rolls back', async () => {
    const id = randomUUID()
    const crash = store.transaction(async db => {
      await receipts.insertAll(db, [receiptOf(id)])
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
    await formerReceipt(id, dayAgo(days))
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
    await store.transaction(db => receipts.insertCancelled(db, receiptOf(other)), { lock: other })
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

describe('on a store of release 0.3', () => {
  const [weeks, old, answered, both] = [[1, 20, 40, 41, 60], [] as string[], randomUUID(), randomUUID()]
  beforeEach(async () => {
    await client.query(`drop table tokenmill.receipt_key, tokenmill.receipt_fill;
drop function tokenmill.follow_receipt, tokenmill.follow_answer, tokenmill.follow_receipts_no_more,
  tokenmill.refuse_receipt_without_key`)
    await client.query(`insert into tokenmill.installation (installation_id, kek_id) values (gen_random_uuid(), 'k')`)
    old.length = 0
    for (const days of weeks) {
      await makeWeek(days)
      for (let n = 0; n < 4; n += 1) {
        const id = randomUUID()
        await formerReceipt(id, dayAgo(days))
        old.push(id)
      }
    }
    await formerAnswer(answered)
    await formerAnswer(answered)
    await formerAnswer(both)
    await formerReceipt(both)
    await client.query('begin')
    await client.query(readSql('0062-receipt-keys.sql'))
    await client.query('commit')
  })

  const state = async () =>
    (await rowsOf<{ is_filled: boolean }>('select is_filled from tokenmill.receipt_fill'))[0]?.is_filled
  /** A store whose transactions fail after so many. */
  function dying(transactions: number): Store {
    let left = transactions
    return {
      ...store,
      transaction: (work, options) => {
        left -= 1
        return left < 0 ? Promise.reject(new Error('a crash')) : store.transaction(work, options)
      },
    }
  }

  /** Checks what must hold before, during and after the fill. */
  async function expectLaws(): Promise<void> {
    expect((await receipts.findAll(store, old)).map(({ receiptId }) => receiptId).sort()).toEqual([...old].sort())
    for (const id of [...old, both]) {
      expect((await receipts.find(store, id))?.receiptId).toBe(id)
      await expect(claim(id)).rejects.toBeInstanceOf(LostRace)
      await expect(
        store.transaction(db => receipts.insertCancelled(db, receiptOf(id)), { lock: id }),
      ).rejects.toBeInstanceOf(LostRace)
      expect(await answer(id)).toBe(0)
    }
    expect(await receipts.find(store, both)).toMatchObject({ revision: 2 })
    // Workers of both releases: each finds the receipts of the other, and of two that write the same one only one does.
    const [ours, theirs, raced, told, mixed] = Array.from({ length: 5 }, () => randomUUID()) as [string, ...string[]]
    await claim(ours)
    expect(await formerReceipt(ours)).toBeUndefined()
    expect(await formerReceipt(theirs ?? '')).toBe(1)
    expect(await receipts.find(store, theirs ?? '')).toMatchObject({ revision: 1, day: dayAgo(0) })
    await expect(claim(theirs ?? '')).rejects.toBeInstanceOf(LostRace)
    const [mine, other] = await Promise.all([
      claim(raced ?? '').then(
        () => 1,
        () => 0,
      ),
      formerReceipt(raced ?? '').then(revision => (revision === undefined ? 0 : 1)),
    ])
    expect(mine + other).toBe(1)
    expect(await rowsOf('select from tokenmill.receipt where receipt_id = $1', [raced])).toHaveLength(1)
    await formerAnswer(told ?? '')
    expect(await answer(told ?? '')).toBe(2)
    expect(await formerReceipt(told ?? '')).toBe(3)
    expect(await receipts.find(store, told ?? '')).toMatchObject({ revision: 3 })
    await formerAnswer(mixed ?? '')
    expect(await claim(mixed ?? '')).toMatchObject([{ revision: 2 }])
  }

  it('every receipt is found and claimed once before the fill, in its midst, after a crash, and after it', async () => {
    expect(await state()).toBe(false)
    await expectLaws()
    for (const pages of [1, 3, 6, 9]) {
      await expect(receiptKeys.fill(dying(pages), { page: 2 })).rejects.toThrow('a crash')
      expect(await state()).toBe(false)
      await expectLaws()
    }
    await Promise.all([receiptKeys.fill(store, { page: 3 }), receiptKeys.fill(store, { page: 2 }), expectLaws()])
    expect(await state()).toBe(true)
    await expectLaws()
    const lost = await rowsOf(`select from tokenmill.receipt as r where not exists (
  select from tokenmill.receipt_key as k where k.receipt_id = r.receipt_id and k.day = r.day)`)
    expect(lost).toEqual([])
    expect(await answer(answered)).toBe(3)
  })

  it('an answer of that release counts before the fill, whoever answers next', async () => {
    expect(await answer(answered)).toBe(3)
    await formerAnswer(answered)
    expect(await claim(answered)).toMatchObject([{ revision: 5 }])
    await receiptKeys.fill(store)
    expect(await receipts.find(store, answered)).toMatchObject({ revision: 5 })
  })

  it('a receipt that was answered anew before its page is found after the fill', async () => {
    const [id = ''] = old
    await formerAnswer(id)
    expect(await keyOf(id)).toMatchObject({ day: null })
    await receiptKeys.fill(store)
    expect((await receipts.find(store, id))?.receiptId).toBe(id)
    await expect(claim(id)).rejects.toBeInstanceOf(LostRace)
  })

  it('a job that was answered by that release gets a receipt of the next revision before the fill', async () => {
    expect(await claim(answered)).toMatchObject([{ revision: 3 }])
  })

  it('the scheduler goes on with a fill that was broken off, before it drops a week', async () => {
    await expect(receiptKeys.fill(dying(2), { page: 2 })).rejects.toThrow('a crash')
    await retention.sweep(store, 30, Date.now())
    expect(await state()).toBe(true)
    const left = await receipts.findAll(store, old)
    expect(left).toHaveLength(8)
    expect(await rowsOf('select from tokenmill.receipt_key where day is not null')).toHaveLength(9)
    for (const { receiptId } of left) await expect(claim(receiptId)).rejects.toBeInstanceOf(LostRace)
  })

  it('its writes are followed until an operator ends that time, and at least until the keys are filled', async () => {
    const triggers = async () =>
      (
        await rowsOf<{ name: string }>(`select tgname as name from pg_trigger where not tgisinternal and tgparentid = 0
and tgrelid in ('tokenmill.receipt'::regclass, 'tokenmill.outbox'::regclass) order by 1`)
      ).map(({ name }) => name)
    const both = ['answer_is_counted', 'receipt_has_its_key']
    expect(await triggers()).toEqual(both)
    await store.transaction(receiptKeys.leaveOlder)
    expect(await triggers()).toEqual(both)
    await receiptKeys.fill(store)
    expect(await triggers()).toEqual(both)
    await store.transaction(receiptKeys.leaveOlder)
    expect(await triggers()).toEqual(['receipt_needs_its_key'])
    await store.transaction(receiptKeys.leaveOlder)
    expect(await triggers()).toEqual(['receipt_needs_its_key'])
    const id = randomUUID()
    expect(await claim(id)).toMatchObject([{ revision: 1 }])
    await expect(formerReceipt(randomUUID())).rejects.toThrow('its writer is of release 0.3')
    await client.query('rollback')
    for (const id of old) expect(await keyOf(id)).toMatchObject({ revision: 1 })
    expect(await keyOf(LOWEST)).toBeUndefined()
  })
})
