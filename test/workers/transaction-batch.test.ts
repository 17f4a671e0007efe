// Chunks of the ledger through queue and workers: each line is stored once, also if many send it at the same time.
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { TRANSACTION_TYPES } from '../../src/job/ledger/transaction.ts'
import type { BlockForm } from '../../src/job/record-columns.ts'
import { openLog } from '../../src/log.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import type { Supervised } from '../../workers/process/supervise.ts'
import { inColumns } from '../job/ledger/lines.ts'
import { type SampleTransaction, transactionOf, uidOf } from '../producers/ingest/sample.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { volume } from '../support/volume.ts'

const MISBEHAVING = fileURLToPath(new URL('../support/scripts/misbehaving-worker.ts', import.meta.url))

const HOSTILE = [
  'NULL',
  '{"a\\',
  '{}',
  "'; --",
  'JOSÉ',
  '😀',
  'a\tb',
  '4111-1111 11111111',
  '\ud83d',
  '',
  'x'.repeat(65),
  // Too long for columns; the second is a good token reference, because characters are counted there.
  'x'.repeat(256),
  '😀'.repeat(200),
]
/** Values for a line, of which some are refused. */
const changed = fc.record(
  {
    ...Object.fromEntries(
      ['merchant_reference', 'clearing_merchant', 'bank_account', 'clearing_reference', 'settlement_batch'].map(
        name => [name, fc.option(fc.constantFrom(...HOSTILE), { nil: undefined })],
      ),
    ),
    amount: fc.constantFrom('0', '-0', '1', '-1', '9'.repeat(18), `-${'9'.repeat(18)}`, '9'.repeat(19), '1.5', '007'),
    fee: fc.constantFrom('0', '-5', '9'.repeat(18), '+1'),
    type: fc.constantFrom(...TRANSACTION_TYPES, 'GIFT'),
    brand: fc.constantFrom('NULL', 'CB_2', 'visa', undefined),
    masked_card: fc.constantFrom(undefined, '411111******1111', '41111111****1111', '4111'),
    token_reference: fc.constantFrom(undefined, 'NULL, "{a}" \\ or so', '4111 1111 1111 1111', '😀'.repeat(200)),
    currency: fc.constantFrom('EUR', 'KWD', 'XAU', 'eur'),
    created_at: fc.constantFrom('2026-01-31T23:59:59.999999Z', '2024-02-29T00:00:00.5Z', '2026-02-29T00:00:00Z'),
    settled_at: fc.constantFrom(undefined, '2000-01-01T00:00:00Z', '2099-12-31T23:59:59.000001Z', '2026-01-01'),
    clearing_date: fc.constantFrom(undefined, '2000-01-01', '2099-12-31', '2024-02-29', '2026-02-29', '1999-12-31'),
  },
  { requiredKeys: [] },
)

describe('a transaction-batch', () => {
  let database: FreshDatabase
  let installation: Installation
  let client: Client
  let batches = 0
  let workers: Supervised
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{ledger}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    workers = await installation.startWorkers({ processes: 2, roles: ['bulk'] })
    client = await installation.connect()
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
  })

  const newBatch = () => `batch-${batches++}`
  type Lines = readonly Record<string, unknown>[]
  const sendAs = (form: BlockForm, transactions: Lines, batchId = newBatch(), chunk = 0) => {
    const lines = transactions.map((transaction, index) => ({ line: index + 1, transaction }))
    const members = form === 'rows' ? { transactions: lines } : inColumns(lines)
    return client.call('transaction-batch', { batch_id: batchId, chunk, ...members }, { jti: `${batchId}-${chunk}` })
  }
  const send = (transactions: Lines, batchId?: string, chunk?: number) => sendAs('rows', transactions, batchId, chunk)
  const made = (seed: string, count = 1, more: Partial<SampleTransaction> = {}) =>
    Array.from({ length: count }, (_, index) => ({ ...transactionOf(index, { entity: ENTITY, seed }), ...more }))
  const one = (seed: string, more: Record<string, unknown> = {}) => ({
    ...transactionOf(0, { entity: ENTITY, seed }),
    ...more,
  })
  /** On a busy machine an earlier answer may be published twice, and the second time answers what has the same jti. */
  const refused = (send: () => Promise<Result>) => until(async () => [await send()].find(({ code }) => code !== 200))
  const ask = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows

  it('refuses each bad line alone, by reason and field, and stores the others', async () => {
    const bad: [Record<string, unknown>, string, string][] = [
      [one('bad', { transaction_uid: 'x' }), 'field_format', 'body.transaction_uid'],
      [one('bad-1', { entity_uid: randomUUID() }), 'entity_forbidden', 'body.entity_uid'],
      [one('bad-2', { type: 'GIFT' }), 'field_value', 'body.type'],
      [one('bad-3', { currency: 'XAU' }), 'currency_unknown', 'body.currency'],
      [one('bad-4', { amount: '1.5' }), 'field_format', 'body.amount'],
      [one('bad-5', { amount: 15 }), 'field_type', 'body.amount'],
      [one('bad-6', { amount: '-1' }), 'amount_sign', 'body.amount'],
      [one('bad-7', { type: 'REFUND', amount: '1' }), 'amount_sign', 'body.amount'],
      [one('bad-8', { type: 'FEE', amount: '1' }), 'amount_sign', 'body.amount'],
      [one('bad-9', { amount: '9'.repeat(19) }), 'field_format', 'body.amount'],
      [one('bad-10', { masked_card: '4111111111111111' }), 'field_format', 'body.masked_card'],
      [one('bad-11', { masked_card: '41111111**1111' }), 'field_format', 'body.masked_card'],
      [one('bad-12', { token_reference: '4111 1111 1111 1111' }), 'field_format', 'body.token_reference'],
      [one('bad-13', { created_at: '1999-12-31T23:59:59Z' }), 'field_range', 'body.created_at'],
      [one('bad-14', { created_at: '2099-01-01T00:00:00Z' }), 'field_range', 'body.created_at'],
      [one('bad-15', { created_at: '2026-01-31T23:59:59.9999999Z' }), 'field_range', 'body.created_at'],
      [one('bad-16', { clearing_date: '2026-02-30' }), 'field_format', 'body.clearing_date'],
      [one('bad-17', { merchant_reference: 'a\nb' }), 'field_characters', 'body.merchant_reference'],
      [one('bad-18', { cvv: '123' }), 'cvv_not_allowed', 'body.cvv'],
      [one('bad-19', { amount: undefined }), 'field_required', 'body.amount'],
      [one('bad-20', { merchant_reference: '4111-1111 11111111' }), 'reference_pan', 'body.merchant_reference'],
      [one('bad-21', { bank_account: 'DE 4111111234561111' }), 'reference_pan', 'body.bank_account'],
    ]
    const good = TRANSACTION_TYPES.map((_, index) => transactionOf(index, { entity: ENTITY, seed: 'good' }))
    const lowest = one('least', {
      amount: '0',
      fee: '-5',
      commission: '-0',
      brand: 'NULL',
      merchant_reference: '{"a\\',
      clearing_reference: '4242424242424242',
    })
    const result = await send([...bad.map(([transaction]) => transaction), ...good, lowest])
    expect(result).toMatchObject({ status: 'SUCCEEDED', code: 200 })
    expect(result.counts).toMatchObject({ CREATED: good.length + 1, REJECTED: bad.length, FAILED: 0 })
    expect(result.records?.map(({ line, reason, field }) => [line, reason, field])).toEqual(
      bad.map(([, reason, field], index) => [index + 1, reason, field]),
    )
    const [stored] = await ask(
      'select amount, fee, commission, brand, merchant_reference from tokenmill.transaction where transaction_uid = $1',
      [lowest.transaction_uid],
    )
    expect(stored).toEqual({ amount: 0, fee: -5, commission: 0, brand: 'NULL', merchant_reference: '{"a\\' })
  })

  it('never rewrites a line: the same is UNCHANGED, another under its uid is refused, whatever differs', async () => {
    const first = one('law')
    await send([first])
    const others = [
      { amount: '999' },
      { fee: '999' },
      { currency: 'KWD' },
      { created_at: '2026-05-01T00:00:00Z' },
      { merchant_reference: undefined },
      { settlement_batch: 'other' },
      { clearing_date: '2026-01-09' },
    ]
    const result = await send([
      first,
      { ...first, transaction_uid: first.transaction_uid.toUpperCase() },
      ...others.map(other => ({ ...first, ...other })),
    ])
    expect(result.counts).toMatchObject({ CREATED: 0, UNCHANGED: 2, REJECTED: others.length })
    expect(new Set(result.records?.map(({ reason, reference }) => `${reason} ${reference}`))).toEqual(
      new Set([`transaction_conflict ${first.transaction_uid}`]),
    )
    expect(
      await ask('select amount::text from tokenmill.transaction where transaction_uid = $1', [first.transaction_uid]),
    ).toEqual([{ amount: first.amount }])
  })

  it('lets the first line of a chunk stand where a uid is there twice', async () => {
    const first = one('twice')
    const result = await send([first, { ...first, amount: '77' }, first])
    expect(result.counts).toMatchObject({ CREATED: 1, UNCHANGED: 1, REJECTED: 1 })
    expect(result.records).toMatchObject([{ line: 2, reason: 'transaction_conflict' }])
  })

  it('stores each line once and tells one CREATED for it, when many chunks of both forms with the same lines run at once', async () => {
    const lines = made('race', 300)
    // Chunks are shuffled, overlap, and hold lines of several months without partitions; one line in four differs.
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, copy) => {
        const order = lines.map((line, index) => ({ line, key: (index * 7_919 + copy * 104_729) % 1_009 }))
        const shuffled = order.sort((a, b) => a.key - b.key).map(({ line }) => line)
        const form = copy % 2 === 0 ? 'columns' : 'rows'
        const isOther = copy % 4 === 3 || copy === 4
        return sendAs(
          form,
          isOther ? shuffled.map(line => ({ ...line, created_at: '2011-11-11T11:11:11Z' })) : shuffled,
        )
      }),
    )
    const sum = (outcome: 'CREATED' | 'UNCHANGED' | 'REJECTED' | 'FAILED') =>
      results.reduce((all, { counts }) => all + (counts?.[outcome] ?? 0), 0)
    expect(sum('CREATED')).toBe(300)
    expect(sum('FAILED')).toBe(0)
    expect(sum('CREATED') + sum('UNCHANGED') + sum('REJECTED')).toBe(12 * 300)
    const uids = lines.map(line => line.transaction_uid)
    const [stored] = await ask(
      'select count(*)::int as rows, count(distinct transaction_uid)::int as uids from tokenmill.transaction where transaction_uid = any($1)',
      [uids],
    )
    expect(stored).toEqual({ rows: 300, uids: 300 })
    expect(await ask('select from tokenmill.ledger_uid where transaction_uid = any($1)', [uids])).toHaveLength(300)
  })

  it('is answered from its receipt when it comes again, and refused as another chunk under its jti', async () => {
    const reused = { code: 400, error: { details: { 'body.jti': { code: 'jti_reused' } } } }
    for (const [form, other] of [
      ['rows', 'columns'],
      ['columns', 'rows'],
    ] as const) {
      const batchId = newBatch()
      const lines = [...made(`again-${form}`, 3), one('again-bad', { currency: 'XTS' })]
      const first = await sendAs(form, lines, batchId)
      expect(first.counts).toMatchObject({ CREATED: 3, REJECTED: 1 })
      const again = await sendAs(form, lines, batchId)
      expect(again).toEqual({ ...first, attempt: again.attempt, envelope: again.envelope })
      expect(await refused(() => sendAs(form, made('again', 2), batchId))).toMatchObject(reused)
      // The same lines in the other form are another chunk, and another chunk in it isn't the batch's.
      expect(await refused(() => sendAs(other, lines, batchId))).toMatchObject(reused)
      expect(await sendAs(other, made('again', 2), batchId, 1)).toMatchObject({
        code: 400,
        error: { details: { 'body.request.batch_id': { code: 'batch_layout' } } },
      })
    }
  })

  it('is another chunk if a repeat puts other lines beside its columns', async () => {
    const batchId = newBatch()
    const lines = made('split', 3).map((transaction, index) => ({ line: index + 1, transaction }))
    const [first, ...rest] = lines
    const sendSplit = (members: object) =>
      client.call('transaction-batch', { batch_id: batchId, chunk: 0, ...members } as never, { jti: `${batchId}-0` })
    const { columns } = inColumns(rest)
    const split = { columns: { ...columns, others: [0] }, transactions: [first] }
    const stored = await sendSplit(split)
    expect(stored.counts).toMatchObject({ CREATED: 3 })
    expect((await sendSplit(split)).counts).toEqual(stored.counts)
    expect(await refused(() => sendSplit(inColumns(lines)))).toMatchObject({
      code: 400,
      error: { details: { 'body.jti': { code: 'jti_reused' } } },
    })
  })

  it('is refused as a whole without its role, under another jti than its chunk’s, and in a batch of tokens', async () => {
    const { credentials } = await installation.addClient('reader', { roles: ['TOKEN_READ'] })
    const reader = await installation.connect({ credentials })
    const request = { batch_id: 'b', chunk: 0, transactions: [{ line: 1, transaction: one('role') }] }
    expect(await reader.call('transaction-batch', request, { jti: 'b-0' })).toMatchObject({ code: 403 })
    expect(await client.call('transaction-batch', request, { jti: 'other' })).toMatchObject({
      code: 400,
      error: { details: { 'body.jti': { code: 'field_format' } } },
    })
    await ask(
      `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at) values ($1, 'tokens', 'token-create', 500, '{}', now())`,
      [client.clientId],
    )
    expect(await send([one('role')], 'tokens')).toMatchObject({
      code: 400,
      error: { details: { 'body.request.batch_id': { code: 'batch_layout' } } },
    })
    expect(
      await ask('select from tokenmill.transaction where transaction_uid = $1', [one('role').transaction_uid]),
    ).toEqual([])
  })

  it('answers what was not started as CANCELLED once its batch is cancelled', async () => {
    for (const form of ['rows', 'columns'] as const) {
      const batchId = newBatch()
      await sendAs(form, made(`cancel-${form}`, 2), batchId)
      await ask(`update tokenmill.batch set cancelled_at = now() where batch_id = $1`, [batchId])
      const result = await sendAs(form, made('cancelled', 2), batchId, 1)
      expect(result.counts).toMatchObject({ CREATED: 0, CANCELLED: 2 })
    }
  })

  it('lets a line that finds a bug fail alone, and decides it anew when the chunk comes again', async () => {
    await workers.close()
    const misbehaving = await installation.startWorkers({ processes: 1, roles: ['bulk'], script: MISBEHAVING })
    const chunks = (['rows', 'columns'] as const).map(form => {
      const lines = made(`poison-${form}`, 20).map((line, index) =>
        index === 7 ? { ...line, merchant_reference: 'POISON-THROW' } : line,
      )
      return { form, lines, batchId: newBatch(), revision: 0 }
    })
    for (const chunk of chunks) {
      const first = await sendAs(chunk.form, chunk.lines, chunk.batchId)
      chunk.revision = first.revision
      expect(first.counts).toMatchObject({ CREATED: 19, FAILED: 1 })
      expect(first.records).toMatchObject([
        { line: 8, outcome: 'FAILED', code: 500, reference: chunk.lines[7]?.transaction_uid },
      ])
    }
    await misbehaving.close()
    await installation.startWorkers({ processes: 1, roles: ['bulk'] })
    for (const { form, lines, batchId, revision } of chunks) {
      const again = await sendAs(form, lines, batchId)
      expect(again.revision).toBeGreaterThan(revision)
      expect(again.counts).toMatchObject({ CREATED: 20, FAILED: 0 })
    }
  })

  it('stores, answers and keeps the same for lines in columns and for lines that only the schema checks, for any values', async () => {
    // The fast check doesn't accept an entity in capitals, so the schema checks the line; the entity is the same.
    const twinOf = (lines: Record<string, unknown>[], seed: string) =>
      lines.map((line, index) => ({
        ...line,
        transaction_uid: uidOf(`${seed}-${index}`),
        entity_uid: ENTITY.toUpperCase(),
      }))
    const without = (text: string, uids: readonly string[]) =>
      uids.reduce((all, uid, index) => all.replaceAll(uid, `uid ${index}`), text)
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(changed, { minLength: 1, maxLength: 20 }), async changes => {
        runs += 1
        const lines = changes.map((change, index) => ({ ...one(`any-${runs}-${index}`), ...change }))
        const seen = async (given: readonly Record<string, unknown>[], form: BlockForm = 'rows') => {
          const batchId = newBatch()
          const { counts, records, code } = await sendAs(form, given, batchId)
          const uids = given.map(line => String(line['transaction_uid']))
          const [receipt] = await ask<{ outcomes: string }>(
            'select outcomes::text as outcomes from tokenmill.receipt where batch_no = (select batch_no from tokenmill.batch where batch_id = $1)',
            [batchId],
          )
          const stored = await ask<{ row: Record<string, unknown> }>(
            `select to_jsonb(t) - 'batch_no' - 'recorded_at' as row from tokenmill.transaction as t
where transaction_uid = any($1) order by array_position($1, transaction_uid)`,
            [uids],
          )
          return { uids, stored, text: without(JSON.stringify({ counts, records, code, receipt, stored }), uids) }
        }
        const plain = await seen(lines)
        const twin = await seen(twinOf(lines, `twin-${runs}`))
        expect(twin.text).toBe(plain.text)
        const renamed = (seed: string) =>
          lines.map((line, index) => ({ ...line, transaction_uid: uidOf(`${seed}-${runs}-${index}`) }))
        const columns = await seen(renamed('columns'), 'columns')
        expect(columns.text).toBe(plain.text)
        // The same again and some others, a uid twice, and a line with the uid of another one.
        const mixOf = (all: readonly Record<string, unknown>[], seed: string) => [
          ...all,
          ...made(`${seed}-${runs}`, 70),
          ...all.slice(0, 3),
          { ...all[0], amount: '0', fee: '1' },
        ]
        const mixed = await seen(mixOf(lines, 'mixed'))
        const inBoth = await seen(mixOf(renamed('columns'), 'mixed-columns'), 'columns')
        expect(inBoth.text).toBe(mixed.text)
        // The stored rows equal what the server reads from the given texts.
        const stored = new Set(plain.stored.map(({ row }) => row['transaction_uid']))
        const taken = lines.filter(line => stored.has(line.transaction_uid))
        const read = await ask<{ row: unknown }>(
          `select to_jsonb(v) - 'batch_no' - 'recorded_at' as row
from jsonb_populate_recordset(null::tokenmill.transaction, $1::jsonb) as v`,
          [JSON.stringify(taken)],
        )
        expect(plain.stored).toEqual(read)
      }),
      { numRuns: volume(40, 400) },
    )
  })

  it('takes 1,000 lines and no more', async () => {
    expect((await send(made('full', 1_000))).counts).toMatchObject({ CREATED: 1_000 })
    await expect(send(made('over', 1_001))).rejects.toThrow('body.transactions: field_length')
    await expect(
      client.call('transaction-batch', { batch_id: 'b', chunk: 0, transactions: [{ line: 0, transaction: {} }] }),
    ).rejects.toThrow('body.transactions: field_type')
  })
})

describe('the store of the ledger', () => {
  let database: FreshDatabase
  let reader: Store
  beforeAll(async () => {
    database = await freshDatabase()
    reader = openStore(database.url, { log: openLog('silent'), connectionsMax: 1, role: 'tokenmill_reader' })
  })
  afterAll(async () => {
    await reader?.close()
    await database?.drop()
  })

  it('lets the reader read and nothing else', async () => {
    expect(await reader.query({ text: 'select * from tokenmill.transaction' })).toMatchObject({ count: 0 })
    await expect(reader.query({ text: 'delete from tokenmill.transaction' })).rejects.toMatchObject({ code: '42501' })
    await expect(reader.query({ text: 'delete from tokenmill.ledger_uid' })).rejects.toMatchObject({ code: '42501' })
  })
})
