// Reports over a real store: the results of the SQL compared with a computation in memory.
import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ReportType } from '../../src/job/report.ts'
import { openLog } from '../../src/log.ts'
import { roundHalfAway } from '../../src/report/allocate.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import { openFiles } from '../../src/report/files/open.ts'
import { decimal } from '../../src/report/money.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { makeReport } from '../../workers/report/make.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { DAY, fillLedger, type Line, writeLines } from './ledger.ts'
import { CURRENCIES } from './memory-ledger.ts'

const minor = fc.bigInt({ min: 0n, max: 10n ** 18n - 1n })
const SIGN = { SALE: 1n, REFUND: -1n, CHARGEBACK: -1n, CHARGEBACK_REVERSAL: 1n, ADJUSTMENT: -1n, FEE: 0n } as const

const line: fc.Arbitrary<Line> = fc
  .record({
    currency: fc.constantFrom(...CURRENCIES),
    type: fc.constantFrom(...(Object.keys(SIGN) as (keyof typeof SIGN)[])),
    brand: fc.option(fc.constantFrom('VISA', 'JCB', 'B')),
    amount: minor,
    fee: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }),
    commission: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }),
    batch: fc.option(fc.constantFrom('B-1', 'b-1', 'B 2', 'ä', '')),
    merchant: fc.option(fc.constantFrom('Shop', 'shop', 'Š', '')),
    reference: fc.option(fc.constantFrom('=1', 'x', 'a,b"c')),
  })
  .map(made => ({ ...made, amount: made.amount * SIGN[made.type] }))

describe('the reports of a ledger', () => {
  let database: FreshDatabase
  let store: Store
  let reader: Store
  let files: ReportFiles
  let folder: string
  beforeAll(async () => {
    database = await freshDatabase()
    const log = openLog('error')
    store = openStore(database.url, { log, connectionsMax: 2 })
    reader = openStore(database.url, { log, connectionsMax: 1, role: 'tokenmill_reader' })
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-reports-'))
    files = openFiles({ url: pathToFileURL(folder).href })
  })
  afterAll(async () => {
    await reader?.close()
    await store?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  async function csvOf(reportType: ReportType, entityId: string, parameters: Record<string, string>) {
    const task = { reportUid: randomUUID(), reportType, entityId, parameters, mimeType: 'text/csv' as const }
    const made = await makeReport({ store: reader, files }, task, () => {})
    const rows = parse(await readFile(join(folder, made.storageKey)), { columns: true, record_delimiter: '\r\n' })
    return { made, rows: rows as Record<string, string>[] }
  }
  const totalsOf = (rows: Record<string, string>[]) =>
    Object.fromEntries(rows.filter(({ record }) => record === 'TOTAL').map(row => [row['currency'], row]))
  const period = { invoicePeriodFrom: DAY, invoicePeriodTo: DAY }

  it('tie out for any ledger, in every exponent, and say what a plain sum says', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 25 }), async lines => {
        const entity = randomUUID()
        await writeLines(store, entity, lines)
        await writeLines(store, randomUUID(), lines.slice(0, 3))
        const shown = (of: (each: Line) => bigint, currency: string) =>
          decimal(
            lines.filter(each => each.currency === currency).reduce((sum, each) => sum + of(each), 0n),
            currency,
          )
        const settlement = await csvOf('MERCHANT_SETTLEMENT_REPORT', entity, { clearingDate: DAY })
        const daily = await csvOf('DAILY_TRANSACTION_REPORT', entity, { reportableDay: DAY })
        const partner = await csvOf('PARTNER_COMMISSION_REPORT', entity, { ...period, partnerSharePercent: '33.3' })
        const charged = await csvOf('INVOICE', entity, { ...period, taxPercent: '7.7' })
        expect(settlement.made.lines).toBe(lines.length)
        expect(daily.made.lines).toBe(lines.length)
        const currencies = [...new Set(lines.map(({ currency }) => currency))]
        for (const { rows } of [settlement, daily, partner, charged])
          expect(Object.keys(totalsOf(rows)).toSorted()).toEqual(currencies.toSorted())
        for (const currency of currencies) {
          const net = shown(({ amount, fee, commission }) => amount - fee - commission, currency)
          expect(totalsOf(settlement.rows)[currency]).toMatchObject({
            net,
            gross: shown(({ amount }) => amount, currency),
          })
          expect(totalsOf(daily.rows)[currency]).toMatchObject({ net })
          const of = lines.filter(each => each.currency === currency)
          const commission = of.reduce((sum, each) => sum + each.commission, 0n)
          const charge = commission + of.reduce((sum, each) => sum + each.fee, 0n)
          expect(totalsOf(partner.rows)[currency]?.['partnerShare']).toBe(
            decimal(roundHalfAway(commission * 333n, 1000n), currency),
          )
          expect(totalsOf(charged.rows)[currency]?.['due']).toBe(
            decimal(charge + roundHalfAway(charge * 77n, 1000n), currency),
          )
        }
      }),
      { numRuns: 25 },
    )
  })

  it('hold nothing of another entity or another day', async () => {
    const entity = randomUUID()
    await fillLedger(store, entity, 50)
    await fillLedger(store, entity, 7, '2026-04-01')
    await fillLedger(store, randomUUID(), 50)
    expect((await csvOf('DAILY_TRANSACTION_REPORT', entity, { reportableDay: DAY })).made.lines).toBe(50)
    expect((await csvOf('DAILY_TRANSACTION_REPORT', entity, { reportableDay: '2026-03-04' })).made.lines).toBe(0)
    const both = { invoicePeriodFrom: DAY, invoicePeriodTo: '2026-04-01' }
    const { rows } = await csvOf('INVOICE', entity, both)
    const counted = rows
      .filter(({ record }) => record === 'TOTAL')
      .reduce((sum, { transactions }) => sum + Number(transactions), 0)
    expect(counted).toBe(57)
  })

  it('tell how tokens stand at the networks, and what is not covered', async () => {
    const entity = randomUUID()
    const [scope, foreign] = [randomUUID(), randomUUID()]
    await store.query({
      text: 'insert into tokenmill.scope (token_scope, entity_id) values ($1, $2), ($3, $4)',
      values: [scope, entity, foreign, randomUUID()],
    })
    // The scheme tokens of ten tokens: three have none, three are active (one unchecked), two suspended, one refused,
    // one is deleted.
    await store.query({
      text: `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, created_at, updated_at, version)
select gen_random_uuid(), s, case when n = 9 then 'DELETED' else 'ACTIVE' end, 'REUSE',
  case when n = 9 then null else array[gen_random_uuid()] end, $3::date + n * interval '1 hour', $3::date + interval '2 day', 1
from generate_series(0, 9) as n, unnest(array[$1, $2]::uuid[]) as s`,
      values: [scope, foreign, DAY],
    })
    await store.query({
      text: `insert into tokenmill.scheme_token (provision_id, token_id, token_scope, client_id, provider, current, background, state,
  reference, reference_sealed, reference_version, refusal, retired_at, due_at, checked_at, version, created_at, updated_at)
select gen_random_uuid(), token_id, token_scope, 'c', 'network', true, false, state, case when state in ('PENDING', 'VOID') then null else n::text || token_id end,
  case when state in ('PENDING', 'VOID') then null else '\\x00'::bytea end, case when state in ('PENDING', 'VOID') then null else 1 end,
  case when state = 'VOID' then 'declined' end, case when n = 9 then now() end, case when n = 9 then now() end,
  case when n = 3 then now() - interval '3 day' else now() end, 1, now(), now()
from (select token_id, token_scope, n, (array['ACTIVE','ACTIVE','ACTIVE','SUSPENDED','SUSPENDED','VOID','ACTIVE'])[n - 2] as state
  from (select token_id, token_scope, row_number() over (partition by token_scope order by created_at) - 1 as n from tokenmill.token) as numbered
  where n >= 3) as made`,
    })
    const { rows } = await csvOf('SCHEME_TOKEN_REPORT', entity, {})
    expect(
      rows
        .filter(({ record }) => record === 'LINE')
        .map(row => [row['schemeStatus'], row['tokens'], row['unchecked'], row['refused'], row['openDeletions']]),
    ).toEqual([
      ['NONE', '4', '0', '1', '0'],
      ['ACTIVE', '3', '1', '0', '0'],
      ['DELETION_OPEN', '0', '0', '0', '1'],
      ['SUSPENDED', '2', '0', '0', '0'],
    ])
    expect(rows.at(-1)).toMatchObject({ record: 'TOTAL', tokens: '9', openDeletions: '1', lines: '4' })
    const activity = await csvOf('TOKEN_ACTIVITY_REPORT', entity, { reportableDay: DAY, reportableDayTo: '2026-03-08' })
    expect(activity.rows.at(-1)).toMatchObject({
      record: 'TOTAL',
      created: '10',
      deleted: '1',
      suspended: '0',
      lines: '2',
    })
  })

  it('say in a note if their period begins before the oldest receipts', async () => {
    const textOf = async (reportableDay: string) => {
      const parameters = { reportableDay, reportableDayTo: today }
      const task = {
        reportUid: randomUUID(),
        reportType: 'TOKEN_ACTIVITY_REPORT',
        entityId: randomUUID(),
        parameters,
      } as const
      const made = await makeReport({ store: reader, files }, { ...task, mimeType: 'text/plain' }, () => {})
      return readFile(join(folder, made.storageKey), 'utf8')
    }
    const today = new Date().toISOString().slice(0, 10)
    const days = (n: number) => new Date(Date.now() - n * 86_400_000).toISOString().slice(0, 10)
    expect(await textOf(days(300))).toMatch(/Updated is not complete for days before \d{4}-\d\d-\d\d: /)
    expect(await textOf(days(7))).not.toContain('not complete')
  })

  it('leave no file behind where they do not tie out', async () => {
    const before = await readdir(folder)
    const entity = randomUUID()
    await writeLines(store, entity, [
      {
        currency: 'XAU',
        type: 'SALE',
        brand: null,
        amount: 1n,
        fee: 0n,
        commission: 0n,
        batch: null,
        merchant: null,
        reference: null,
      },
    ])
    await expect(csvOf('DAILY_TRANSACTION_REPORT', entity, { reportableDay: DAY })).rejects.toThrow(
      /unknown currency XAU/,
    )
    expect(await readdir(folder)).toEqual(before)
  })

  it('tell one file by its name, and are closed once their period is over', async () => {
    const entity = randomUUID()
    const { made } = await csvOf('INVOICE', entity, period)
    expect(made).toMatchObject({ lines: 0, periodClosed: true })
    expect(made.fileName).toMatch(/^INVOICE_2026-03-05_[0-9a-f-]{36}\.csv$/)
    const today = new Date().toISOString().slice(0, 10)
    expect((await csvOf('DAILY_TRANSACTION_REPORT', entity, { reportableDay: today })).made.periodClosed).toBe(false)
    expect((await csvOf('BATCH_REPORT', entity, { batchId: 'b' })).made.periodClosed).toBe(false)
  })
})
