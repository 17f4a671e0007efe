import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { guard, unguarded } from '../../src/csv-text.ts'
import { isRefusal } from '../../src/errors.ts'
import { writeCsv } from '../../src/report/csv.ts'
import type { Definition, Plan, Row } from '../../src/report/definition.ts'
import { merchantSettlement } from '../../src/report/definitions/merchant-settlement.ts'
import { writePdf } from '../../src/report/pdf/pdf.ts'
import type { Head, Write } from '../../src/report/report-header.ts'
import { writeText } from '../../src/report/text.ts'
import { tieOut, totalsOf } from '../../src/report/tie-out.ts'
import { type LedgerRow, ledgerRow, linesOf, sourceOf } from './memory-ledger.ts'
import { pdfWords } from './pdf-words.ts'

const DAY = '2026-03-05'

function planOf(definition: Definition): Plan {
  const plan = definition.plan({ clearingDate: DAY })
  if (isRefusal(plan)) throw new Error(plan.field)
  return plan
}

async function written(write: Write, lines: readonly Row[], definition = merchantSettlement): Promise<Buffer> {
  const source = sourceOf(lines, 500)
  const head: Head = {
    reportUid: '11111111-1111-4111-8111-111111111111',
    entityId: '22222222-2222-4222-8222-222222222222',
    asOf: Date.UTC(2026, 2, 6, 1, 2, 3),
    totals: totalsOf(definition, source.totals),
  }
  const plan = planOf(definition)
  const pieces: Buffer[] = []
  for await (const piece of write(definition, plan, head, tieOut(definition, plan, source)))
    pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

const row = (more: Partial<LedgerRow> = {}): LedgerRow => ({
  currency: 'EUR',
  settlementBatch: 'B-1',
  merchantReference: 'order 1',
  gross: 1000n,
  fee: 20n,
  commission: 5n,
  ...more,
})

const csvOf = async (rows: readonly LedgerRow[]): Promise<Record<string, string>[]> =>
  parse(await written(writeCsv, linesOf(rows)), { columns: true, record_delimiter: '\r\n', relax_column_count: false })

describe('a report as CSV', () => {
  it('has no text cell that a spreadsheet would take for a formula', async () => {
    const tricks = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '\0=1', '＝1', '＋1', '－1', '＠1']
    for (const trick of tricks) expect(guard(trick)).toBe(`'${trick}`)
    const hidden = [
      ' ',
      '\u00a0',
      '\u200b',
      '\ufeff',
      '\u202e',
      '\u2060',
      '\u00ad',
      '\u3000',
      '\u0085',
      '\u2028',
      '\v',
      '\u0001',
      '\u3164',
      '\u2800',
    ]
    for (const before of [...hidden, '\ufeff \u200b\u200d'])
      for (const start of ['=1+1', '+1', '-1', '@A1', '＝1', '﹦1', '﹢1', '﹣1', '﹫1']) {
        expect(guard(before + start)).toBe(`'${before}${start}`)
        expect(unguarded(guard(before + start))).toBe(before + start)
      }
    for (const plain of ['a=1', ' a-b', '1-2', '\u200bx', "'x", '', 'é=']) expect(guard(plain)).toBe(plain)
    const found = await csvOf(tricks.map(merchantReference => row({ merchantReference })))
    expect(found.filter(({ record }) => record === 'LINE').map(line => line['merchantReference'])).toEqual(
      tricks.map(trick => `'${trick}`),
    )
    const batches = await csvOf([row({ settlementBatch: '=cmd' })])
    expect(batches.find(({ record }) => record === 'GROUP')?.['settlementBatch']).toBe("'=cmd")
  })

  it('leaves amounts alone, negative and huge ones too', async () => {
    const huge = 999_999_999_999_999_999n
    const [line, , total] = await csvOf([row({ gross: -huge, fee: huge, commission: 0n })])
    expect(line).toMatchObject({
      gross: '-9999999999999999.99',
      fee: '9999999999999999.99',
      net: '-19999999999999999.98',
    })
    expect(total).toMatchObject({ record: 'TOTAL', currency: 'EUR', net: '-19999999999999999.98', lines: '1' })
  })

  it('comes back as it was written, whatever its texts hold', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(ledgerRow, { maxLength: 20 }), async rows => {
        const found = await csvOf(rows)
        const lines = found.filter(({ record }) => record === 'LINE')
        expect(lines.map(line => line['merchantReference'])).toEqual(
          linesOf(rows).map(line => guard(line['merchantReference'] ?? '')),
        )
      }),
      { numRuns: 40 },
    )
  })

  it('ends every row with CRLF and states one total a currency', async () => {
    const text = (await written(writeCsv, linesOf([row(), row({ currency: 'JPY' })]))).toString()
    expect(text.split('\r\n')).toHaveLength(1 + 2 + 2 + 2 + 1)
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
    expect(await csvOf([row(), row({ currency: 'JPY' })])).toMatchObject([
      { record: 'LINE' },
      { record: 'GROUP', lines: '1' },
      { record: 'LINE' },
      { record: 'GROUP' },
      { record: 'TOTAL', currency: 'EUR', gross: '10.00', net: '9.75' },
      { record: 'TOTAL', currency: 'JPY', gross: '1000', net: '975' },
    ])
  })
})

describe('a report as plain text', () => {
  it('stands in columns of one width and cuts texts, never numbers', async () => {
    const text = (
      await written(writeText, linesOf([row({ merchantReference: 'x'.repeat(60), gross: 10n ** 18n - 1n })]))
    ).toString()
    const [heading = '', rule = '', line = ''] = text
      .split('\n')
      .slice(text.split('\n').findIndex(each => each.startsWith('Record')))
    expect(line).toHaveLength(rule.length)
    expect(heading.trimEnd().endsWith('Net')).toBe(true)
    expect(line).toContain(`${'x'.repeat(23)}~`)
    expect(line).toContain('9999999999999999.99')
  })
})

describe('a report as PDF', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      row({
        currency: index % 2 ? 'EUR' : 'JPY',
        settlementBatch: `B-${index % 5}`,
        merchantReference: `order ${index}`,
        gross: BigInt(index * 37),
      }),
    )

  it('says who, when, what and how much, and numbers its pages', async () => {
    const words = pdfWords(await written(writePdf, linesOf(many(120))))
    for (const word of [
      'Merchant settlement report',
      DAY,
      '22222222-2222-4222-8222-222222222222',
      'Total EUR',
      'Total JPY',
    ])
      expect(words).toContain(word)
    const pages = Number(/Page 1 of (\d+)/.exec(words)?.[1])
    expect(pages).toBeGreaterThan(1)
    expect(words).toContain(`Page ${pages} of ${pages}`)
    expect(words.match(/Merchant reference/g)).toHaveLength(pages)
    expect(words).toContain('order 119')
  })

  it('has the same bytes when it is written again', async () => {
    const lines = linesOf(many(30))
    expect((await written(writePdf, lines)).equals(await written(writePdf, lines))).toBe(true)
  })

  it('gives the sums of groups beyond 5,000 lines, and says so', async () => {
    const words = pdfWords(await written(writePdf, linesOf(many(5_001))))
    expect(words).toContain('5,001 lines are more than')
    expect(words).not.toContain('order 17')
    expect(words).toContain('B-4')
  })

  it('shows what the standard fonts lack as a question mark, and nothing breaks its table', async () => {
    const strange = ['漢字 ❤', 'a\nb', ')Tj ET (', 'Łódź', 'x'.repeat(128), '']
    const words = pdfWords(
      await written(writePdf, linesOf(strange.map(merchantReference => row({ merchantReference })))),
    )
    expect(words).toContain('?? ?')
    expect(words).toContain(')Tj ET (')
    expect(pdfWords(await written(writePdf, []))).toContain('There is nothing to report')
  })

  it('sets numbers whole, however long they are', async () => {
    const words = pdfWords(
      await written(writePdf, linesOf(Array.from({ length: 20 }, () => row({ gross: 10n ** 18n - 1n })))),
    )
    expect(words).toContain('199,999,999,999,999,999.80')
  })
})
