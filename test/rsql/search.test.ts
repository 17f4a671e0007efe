// The search against PostgreSQL: what it finds is what plain code finds, and never another entity's.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REPORT_STATUSES } from '../../src/job/choices.ts'
import { MIME_TYPES, REPORT_TYPES } from '../../src/job/report.ts'
import { openLog } from '../../src/log.ts'
import { isParseError } from '../../src/rsql/parse-error.ts'
import { checkPattern } from '../../src/rsql/safe-regex.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { ORDER_CRITERIA, type OrderCriterion, type ReportQuery, search } from '../../src/store/report/report-search.ts'
import { uidOf } from '../producers/ingest/sample.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { filters, type Shown } from './filters.ts'

const [OWN, SISTER, STRANGER] = [uidOf('own'), uidOf('sister'), uidOf('stranger')]
const VISIBLE = [OWN, SISTER]

function reportOf(index: number): Shown {
  const pick = <T>(list: readonly T[], salt: number) => list[(index * salt + (index >> 3)) % list.length] as T
  const status = pick(REPORT_STATUSES, 7)
  const createdOn = Date.UTC(2026, 0, 1) + ((index * 7_654_321) % (5 * 86_400_000))
  const parameters = [
    {},
    { clearingDate: '2026-01-02' },
    { reportableDay: '2026-01-01' },
    { clearingDate: '2026-01-03', reportableDay: '2026-01-03' },
  ]
  const names = [`report_${index}.csv`, 'ab%c_1.pdf', `a"b'c\\d.txt`, null]
  return {
    reportUid: uidOf(`report ${index}`),
    reportType: pick(REPORT_TYPES, 3),
    reportParameter: pick(parameters, 5),
    mimeType: pick(MIME_TYPES, 1),
    reportEntityUid: pick([OWN, OWN, SISTER, STRANGER], 1),
    // A report without a file may already have a file name.
    fileName: status === 'SUCCESSFUL' ? `made_${index}.csv` : pick(names, 3),
    createdOn,
    modifiedOn: createdOn + ((index * 1_234_567) % 90_000_000),
    status,
  }
}

const INSERT = `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, file_name, created_on,
  modified_on, status, client_id, request_key, sha256, bytes, storage_key, period_closed, as_of, lines, failure_reason)
select (r->>'reportUid')::uuid, r->>'reportType', r->'reportParameter', r->>'mimeType', (r->>'reportEntityUid')::uuid, r->>'fileName',
  to_timestamp((r->>'createdOn')::bigint / 1000.0), to_timestamp((r->>'modifiedOn')::bigint / 1000.0), r->>'status', 'c', decode(md5(r->>'reportUid'), 'hex'),
  case when made then '\\x00'::bytea end, case when made then 1 end, case when made then r->>'reportUid' end, case when made then true end,
  case when made then now() end, case when made then 1 end, case when r->>'status' in ('FAILED', 'INVALID_INPUT_PARAMETERS') then 'x' end
from jsonb_array_elements($1::jsonb) as r cross join lateral (select r->>'status' = 'SUCCESSFUL' as made) as m`

const REPORTS = Array.from({ length: 90 }, (_, index) => reportOf(index))
const query = (given: Partial<ReportQuery>): ReportQuery => ({
  entities: VISIBLE,
  pageNumber: 1,
  pageSize: 1_000,
  orderBy: 'DESC',
  orderCriteria: 'createdOn',
  ...given,
})

describe('a search of reports', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 4, role: 'tokenmill_reader' })
    const writer = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
    await writer.query({ text: INSERT, values: [JSON.stringify(REPORTS)] })
    await writer.close()
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const found = async (given: Partial<ReportQuery>) => {
    const page = await search(store, query(given))
    if (isParseError(page)) throw new Error(page.message)
    return page
  }
  const uidsOf = (reports: readonly { reportUid: string }[]) => reports.map(({ reportUid }) => reportUid)
  const order = (a: Shown, b: Shown) => b.createdOn - a.createdOn || (a.reportUid < b.reportUid ? 1 : -1)

  it('finds what plain code finds, for any filter, and nothing of an entity that the caller may not see', async () => {
    await fc.assert(
      fc.asyncProperty(filters(REPORTS), async filter => {
        const page = await search(store, query({ search: filter.text }))
        // Expressions beyond the bounds are refused; other tests test the bounds.
        if (isParseError(page)) {
          expect(page.message).toMatch(/more than|deeper than/)
          return
        }
        const visible = filter.mentionsEntity ? VISIBLE : [OWN]
        const expected = REPORTS.filter(
          report => visible.includes(report.reportEntityUid) && filter.matches(report),
        ).sort(order)
        expect(uidsOf(page.reports), filter.text).toEqual(uidsOf(expected))
        expect(page.totals).toBe(expected.length)
      }),
      { numRuns: 600 },
    )
  })

  it.each([
    `reportEntityUid==${STRANGER}`,
    `reportEntityUid==${STRANGER},status=out=(FAILED)`,
    `reportUid=regex=.`,
    `fileName=="' or true --"`,
    `fileName=="x') or (true"`,
    `reportEntityUid=in=(${OWN},${SISTER},${STRANGER}),createdOn>1990-01-01`,
    `createdOn>1990-01-01`,
  ])('%s shows no report of another entity', async text => {
    const { reports } = await found({ search: text })
    expect(reports.filter(({ reportEntityUid }) => reportEntityUid === STRANGER)).toEqual([])
  })

  it('without reportEntityUid finds only the own entity’s', async () => {
    const { reports, totals } = await found({})
    expect(new Set(reports.map(({ reportEntityUid }) => reportEntityUid))).toEqual(new Set([OWN]))
    expect(totals).toBe(REPORTS.filter(({ reportEntityUid }) => reportEntityUid === OWN).length)
    const both = await found({ search: `reportEntityUid=in=(${OWN},${SISTER})` })
    expect(new Set(both.reports.map(({ reportEntityUid }) => reportEntityUid))).toEqual(new Set(VISIBLE))
  })

  it.each(Object.keys(ORDER_CRITERIA) as OrderCriterion[])(
    'by %s shows each report on one page and once',
    async orderCriteria => {
      for (const orderBy of ['ASC', 'DESC'] as const) {
        const whole = await found({ orderCriteria, orderBy })
        const pages = await Promise.all(
          Array.from({ length: Math.ceil(whole.totals / 7) }, (_, index) =>
            found({ orderCriteria, orderBy, pageSize: 7, pageNumber: index + 1 }),
          ),
        )
        expect(pages.flatMap(({ reports }) => uidsOf(reports))).toEqual(uidsOf(whole.reports))
      }
    },
  )

  it('answers a page far beyond the end with nothing and the totals', async () => {
    const { totals } = await found({})
    expect(await found({ pageNumber: Number.MAX_SAFE_INTEGER, pageSize: 1_000 })).toEqual({ totals, reports: [] })
  })

  it('takes only patterns that PostgreSQL takes, and none for long', async () => {
    const sign = fc.constantFrom(...'ab1(|)[]^$*+?{}2,.\\d-_/ä'.split(''))
    let taken = 0
    await fc.assert(
      fc.asyncProperty(fc.array(sign, { minLength: 1, maxLength: 12 }), async signs => {
        const pattern = signs.join('')
        if (checkPattern(pattern)) return
        taken += 1
        await store.query({ text: `select 'aab21_x' ~ $1`, values: [pattern] })
      }),
      { numRuns: 4_000 },
    )
    expect(taken).toBeGreaterThan(100)
    // The slowest expressions that are accepted, with the longest file name.
    const worst = [
      '(a|b)*a(a|b){30}c',
      '((a*)*)*c',
      '(a|a|ab|b)*(a|b){20}$x',
      '(((a{1,2}){1,4}){1,8})*x',
      '.*.*.*.*.*.*.*x',
      '(a?){60}(a){60}',
    ]
    for (const pattern of worst) {
      expect(checkPattern(pattern), pattern).toBeUndefined()
      // One that backtracks would take years.
      const began = performance.now()
      await store.query({
        text: `select repeat('ab', 128) || i ~ $1 from generate_series(1, 500) as i`,
        values: [pattern],
      })
      expect(performance.now() - began, pattern).toBeLessThan(100_000)
    }
  })
})

describe('a search over 100,000 reports', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1, role: 'tokenmill_reader' })
    const writer = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
    await writer.query({
      text: `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, file_name, created_on,
  modified_on, status, client_id, request_key, failure_reason)
select gen_random_uuid(), ($2::text[])[1 + i % 7], jsonb_build_object('clearingDate', to_char(date '2025-01-01' + i % 365, 'YYYY-MM-DD')),
  ($3::text[])[1 + i % 3], $1, 'settlement_' || i || '.csv', timestamptz '2025-01-01Z' + i * interval '5 minutes', timestamptz '2025-01-01Z' + i * interval '5 minutes',
  'FAILED', 'c', decode(md5(i::text), 'hex'), 'x' from generate_series(1, 100000) as i`,
      values: [OWN, REPORT_TYPES, MIME_TYPES],
    })
    await writer.query({ text: 'analyze tokenmill.report' })
    await writer.close()
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /**
   * The shortest of five times of a search, and of a pass over every row. They alternate, so that other load affects
   * both.
   */
  async function compare(text: string): Promise<{ found: number; passed: number }> {
    const pass = `select count(*) from tokenmill.report where file_name ~ '_9[0-9]*5[.]csv$' and md5(file_name) <> ''`
    const least = { found: Number.POSITIVE_INFINITY, passed: Number.POSITIVE_INFINITY }
    const time = async (name: keyof typeof least, work: () => Promise<unknown>) => {
      const began = performance.now()
      await work()
      least[name] = Math.min(least[name], performance.now() - began)
    }
    for (let turn = 0; turn < 5; turn += 1) {
      await time('passed', () => store.query({ text: pass }))
      await time('found', async () => {
        const page = await search(store, query({ entities: [OWN], search: text, pageSize: 50 }))
        if (isParseError(page)) throw new Error(page.message)
        expect(page.totals).toBeGreaterThan(0)
      })
    }
    return least
  }

  it.each([
    ['type, MIME type, time', 'reportType==INVOICE;mimeType==text/csv;createdOn=ge=2025-06-01'],
    ['type, status, day', `reportType==INVOICE;status==FAILED;reportParameter.clearingDate==2025-03-04`],
    ['status, time, pattern', `status==FAILED;createdOn=ge=2025-11-01;fileName=regex="_9\\\\d*5\\\\.csv$"`],
    ['type or status, day', `(reportType==INVOICE,mimeType==text/plain);reportParameter.clearingDate=ge=2025-12-01`],
  ])('by three terms (%s) takes less than half a pass over all of them', async (_name, text) => {
    const { found, passed } = await compare(text)
    expect(found, `${found} ms, ${passed} ms for a pass`).toBeLessThan(passed / 2)
  })
})
