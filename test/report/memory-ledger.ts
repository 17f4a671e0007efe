// A ledger in memory: computes lines, group sums and totals of a report without a store.
import fc from 'fast-check'
import type { Row } from '../../src/report/definition.ts'
import type { Source } from '../../src/report/tie-out.ts'

/** Currencies of every exponent that there is. */
export const CURRENCIES = ['JPY', 'EUR', 'KWD', 'CLF'] as const

const minor = fc.bigInt({ min: -(10n ** 18n) + 1n, max: 10n ** 18n - 1n })

export const ledgerRow = fc.record({
  currency: fc.constantFrom<string>(...CURRENCIES),
  settlementBatch: fc.option(fc.constantFrom<string>('B-1', 'B-2', 'B-3', '')),
  merchantReference: fc.option(fc.string()),
  gross: minor,
  fee: minor,
  commission: minor,
})

export type LedgerRow = typeof ledgerRow extends fc.Arbitrary<infer R> ? R : never

const SUMMED = ['gross', 'fee', 'commission', 'net'] as const

export function linesOf(rows: readonly LedgerRow[]): Row[] {
  return rows
    .map(({ currency, settlementBatch, merchantReference, gross, fee, commission }) => ({
      currency,
      settlementBatch,
      merchantReference,
      gross: `${gross}`,
      fee: `${fee}`,
      commission: `${commission}`,
      net: `${gross - fee - commission}`,
    }))
    .sort((a, b) => order(a.currency, b.currency) || order(a.settlementBatch, b.settlementBatch))
}

function order(a: string | null, b: string | null): number {
  if (a === b) return 0
  if (a === null || b === null) return a === null ? -1 : 1
  return a < b ? -1 : 1
}

export function sumBy(lines: readonly Row[], names: readonly string[]): Row[] {
  const sums = new Map<string, Row>()
  for (const line of lines) {
    const key = JSON.stringify(names.map(name => line[name]))
    const sum = sums.get(key) ?? { ...Object.fromEntries(names.map(name => [name, line[name] ?? null])), lines: '0' }
    sums.set(key, sum)
    sum['lines'] = `${Number(sum['lines']) + 1}`
    for (const name of SUMMED) sum[name] = `${BigInt(sum[name] ?? '0') + BigInt(line[name] ?? '0')}`
  }
  return [...sums.values()]
}

export function sourceOf(lines: readonly Row[], pageRows = 3): Source {
  return {
    totals: sumBy(lines, ['currency']),
    groups: pages(sumBy(lines, ['currency', 'settlementBatch']), pageRows),
    lines: pages(lines, pageRows),
  }
}

export async function* pages(rows: readonly Row[], size: number): AsyncGenerator<Row[], void, void> {
  for (let start = 0; start < rows.length; start += size) yield rows.slice(start, start + size)
}
