// The code of a receipt: the same text for a receipt as it was written and as it is read, whatever it says, by every statement that
// writes one; and another text as soon as a column that decides is another one.
import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noCounts, OUTCOMES } from '../../src/job/outcome.ts'
import { openLog } from '../../src/log.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import { isProved } from '../../src/store/job/receipt.ts'
import type { NewReceipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { CODER } from './coder.ts'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 8 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})

const text = fc.string({ unit: 'grapheme', maxLength: 12 }).map(one => one.replaceAll('\0', '_'))
const bytes = fc.uint8Array({ minLength: 0, maxLength: 32 }).map(one => Buffer.from(one))
const count = fc.nat(2 ** 31 - 1)
const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: null })
const id = fc.constantFrom(1, 2).map(n => (n === 1 ? randomUUID() : randomUUID().toUpperCase()))
const moment = fc.integer({ min: 0, max: 4_000_000_000_000 }).chain(ms => fc.constantFrom(ms, ms + 0.75))

const anyReceipt: fc.Arbitrary<NewReceipt> = fc
  .record({
    entityId: orNull(id),
    clientId: text,
    iss: fc.oneof(text, fc.constantFrom('gateway', 'worker')),
    kind: text,
    jti: text,
    requestDigest: bytes,
    digestVersion: fc.nat(30_000),
    contentDigest: orNull(bytes),
    envelopeDigest: bytes,
    answers: orNull(bytes),
    replyTo: orNull(text),
    reference: orNull(text),
    status: fc.constantFrom('SUCCEEDED', 'FAILED', 'CANCELLED'),
    code: fc.nat(599),
    outcome: orNull(text),
    refusal: orNull(fc.array(fc.record({ reason: text, field: text }), { maxLength: 3 })),
    tokenId: orNull(id),
    batchNo: orNull(count),
    chunk: orNull(count),
    counts: orNull(fc.constantFrom(...OUTCOMES).map(first => ({ ...noCounts(), [first]: 7 }))),
    reasons: orNull(fc.dictionary(fc.constantFrom('REJECTED', 'FAILED'), fc.dictionary(text, count))),
    outcomes: orNull(text),
    failedRecords: count,
    reversal: orNull(fc.constantFrom('REQUIRED', 'COMPLETED')),
    attempt: count,
    acceptedAt: moment,
    completedAt: moment,
  })
  .map(one => ({ ...one, receiptId: randomUUID(), revision: 1 }))

async function read(receiptId: string): Promise<receipts.StoredReceipt> {
  const found = await receipts.find(store, receiptId)
  return found ?? expect.fail('it was written')
}
const isRight = async (receiptId: string) => isProved(CODER, await read(receiptId))
const rowsOf = async (receiptId: string) =>
  (await outbox.sample(store, 10_000)).filter(row => row.receiptId === receiptId)

describe('a receipt', () => {
  it('is proved as it is read, and so are its outbox rows, by whatever statement it was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyReceipt, { minLength: 1, maxLength: 3 }), anyReceipt, async (drawn, next) => {
        // Also where a failure is shrunk.
        const written = drawn.map(one => ({ ...one, receiptId: randomUUID() }))
        await store.transaction(db => receipts.insertAll(db, CODER, written))
        for (const { receiptId } of written) {
          expect(await isRight(receiptId)).toBe(true)
          const askers = { zz: false, [next.jti]: true, a: false }
          await receipts.recordAskers(store, CODER, await read(receiptId), askers)
          expect(await isRight(receiptId)).toBe(true)
          await receipts.revise(store, CODER, await read(receiptId), next)
          expect(await isRight(receiptId)).toBe(true)
          await receipts.revise(store, CODER, await read(receiptId), { ...next, answers: null })
          const rows = await rowsOf(receiptId)
          expect(rows.map(row => outbox.isProved(CODER, row))).toEqual([true, true, true])
          // An earlier row of the envelope says what it asks for.
          expect(rows[0]?.answers).toEqual(rows[1]?.answers)
        }
        const receiptId = randomUUID()
        await store.transaction(db => receipts.insertCancelled(db, CODER, { ...next, receiptId, reversal: 'REQUIRED' }))
        expect(await isRight(receiptId)).toBe(true)
        await receipts.recordCancelledCompensation(store, CODER, await read(receiptId))
        expect(await read(receiptId)).toMatchObject({ reversal: 'COMPLETED' })
        expect(await isRight(receiptId)).toBe(true)
      }),
      { numRuns: 30 },
    )
  })

  it('is not proved any more if any column that decides is another one', async () => {
    const [one] = fc.sample(anyReceipt, 1)
    if (!one) expect.fail('one was made')
    await store.transaction(db => receipts.insertAll(db, CODER, [one]))
    const { rows: columns } = await store.query<{ name: string; type: string }>({
      text: `select column_name as name, data_type as type
from information_schema.columns
where table_schema = 'tokenmill' and table_name = 'receipt'`,
    })
    const changed: Record<string, boolean> = {}
    for (const { name, type } of columns) {
      if (name === 'receipt_id' || name === 'day') continue
      const other = {
        text: name === 'status' ? 'CANCELLED' : name === 'reversal' ? 'COMPLETED' : 'another',
        uuid: randomUUID(),
        bytea: randomBytes(40),
        jsonb: '{"another":1}',
        'timestamp with time zone': new Date(5),
      }[type]
      const reset = { status: 'FAILED', reversal: 'REQUIRED' }[name]
      await store.transaction(async db => {
        if (reset) await db.query({ text: `update tokenmill.receipt set ${name} = $1`, values: [reset] })
        const found = await receipts.find(db, one.receiptId)
        if (found && reset) await receipts.codeAnew(db, CODER, found)
        await db.query({
          text: `update tokenmill.receipt set ${name} = ${other === undefined ? `coalesce(${name}, 0) + 1` : '$2'} where receipt_id = $1`,
          values: other === undefined ? [one.receiptId] : [one.receiptId, other],
        })
        const then = await receipts.find(db, one.receiptId)
        changed[name] = then !== undefined && !isProved(CODER, then)
        await db.query({ text: 'delete from tokenmill.receipt_key' })
        await db.query({ text: 'delete from tokenmill.receipt' })
        await receipts.insertAll(db, CODER, [one])
      })
    }
    const believed = Object.keys(changed).filter(name => !changed[name])
    // It counts answers, and a reader keeps the highest.
    expect(believed).toEqual(['revision'])
  })
})

describe('an outbox row with a text of its own', () => {
  it('is proved as it is read, and not if any column that decides is another one', async () => {
    const resultId = randomUUID()
    const row = { clientId: 'c', replyTo: null, resultId, receiptId: randomUUID(), revision: 0, body: '{}' }
    const outboxId = await outbox.insert(store, CODER, { ...row, envelopeDigest: randomBytes(32), answers: null })
    const taken = async () => (await outbox.sample(store, 1)).find(one => one.outboxId === outboxId)
    const isTold = async () => {
      const found = await taken()
      return found !== undefined && outbox.isProved(CODER, found)
    }
    expect(await isTold()).toBe(true)
    const changes = {
      client_id: `'d'`,
      reply_to: `'r'`,
      result_id: 'gen_random_uuid()',
      receipt_id: 'gen_random_uuid()',
      revision: '7',
      envelope_digest: `'\\x00'`,
      answers: `'\\x00'`,
      body: `'{"status":"SUCCEEDED"}'`,
    }
    for (const [name, value] of Object.entries(changes)) {
      const { rows } = await store.query<{ was: unknown }>({
        text: `select ${name} as was from tokenmill.outbox where outbox_id = $1`,
        values: [outboxId],
      })
      const set = (to: string, values: unknown[] = []) =>
        store.query({
          text: `update tokenmill.outbox set ${name} = ${to} where outbox_id = $1`,
          values: [outboxId, ...values],
        })
      await set(value)
      expect(await isTold(), name).toBe(false)
      await set('$2', [rows[0]?.was])
      expect(await isTold(), name).toBe(true)
    }
  })
})
