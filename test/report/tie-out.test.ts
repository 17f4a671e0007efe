import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Plan, Row } from '../../src/report/definition.ts'
import { invoice } from '../../src/report/definitions/invoice.ts'
import { merchantSettlement } from '../../src/report/definitions/merchant-settlement.ts'
import { decimal } from '../../src/report/money.ts'
import { type Entry, Mismatch, type Source, tieOut } from '../../src/report/tie-out.ts'
import { ledgerRow, linesOf, pages, sourceOf, sumBy } from './memory-ledger.ts'

const plan: Pick<Plan, 'shares'> = { shares: [] }

async function all(source: Source, definition = merchantSettlement, shares = plan): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const page of tieOut(definition, shares, source)) entries.push(...page)
  return entries
}

const LINES = linesOf([
  { currency: 'EUR', settlementBatch: 'B-1', merchantReference: 'a', gross: 1000n, fee: 20n, commission: 5n },
  { currency: 'EUR', settlementBatch: 'B-1', merchantReference: 'b', gross: -300n, fee: 3n, commission: 0n },
  { currency: 'EUR', settlementBatch: 'B-2', merchantReference: 'c', gross: 500n, fee: 10n, commission: 1n },
  { currency: 'JPY', settlementBatch: null, merchantReference: 'd', gross: 7n, fee: 1n, commission: 1n },
])
const changed = (row: Row, name: string): Row => ({ ...row, [name]: `${BigInt(row[name] ?? '0') + 1n}` })

describe('a report whose sums differ', () => {
  const source = (part: Partial<Source>) => ({ ...sourceOf(LINES), ...part })
  const groups = sumBy(LINES, ['currency', 'settlementBatch'])
  const totals = sumBy(LINES, ['currency'])

  it.each(['gross', 'fee', 'commission', 'net'])('is no report: %s of one line', async name => {
    const spoilt = LINES.map((line, index) => (index === 1 ? changed(line, name) : line))
    await expect(all({ ...sourceOf(LINES), lines: pages(spoilt, 2) })).rejects.toThrow(Mismatch)
  })

  it.each(['gross', 'fee', 'commission', 'net', 'lines'])('is no report: %s of one group', async name => {
    const spoilt = groups.map((group, index) => (index === 1 ? changed(group, name) : group))
    await expect(all(source({ groups: pages(spoilt, 2) }))).rejects.toThrow(/group EUR, B-2/)
  })

  it.each(['gross', 'fee', 'commission', 'net', 'lines'])('is no report: %s of one total', async name => {
    const spoilt = totals.map((total, index) => (index === 0 ? changed(total, name) : total))
    await expect(all(source({ totals: spoilt }))).rejects.toThrow(/total EUR/)
  })

  it('is no report: a line, a group or a total too many or too few', async () => {
    await expect(all(source({ lines: pages(LINES.slice(1), 2) }))).rejects.toThrow(Mismatch)
    await expect(all(source({ lines: pages([...LINES, ...LINES.slice(-1)], 2) }))).rejects.toThrow(Mismatch)
    await expect(all(source({ groups: pages(groups.slice(0, -1), 2) }))).rejects.toThrow(/no sums/)
    await expect(all(source({ groups: pages([...groups, ...groups.slice(-1)], 2) }))).rejects.toThrow(/without lines/)
    await expect(all(source({ totals: totals.slice(0, 1) }))).rejects.toThrow(/no total/)
    await expect(all(source({ totals: [...totals, { ...totals[0], currency: 'USD' } as Row] }))).rejects.toThrow(
      Mismatch,
    )
  })

  it('is no report: groups of another order, a currency that has no minor unit, an amount that is no whole number', async () => {
    await expect(all(source({ groups: pages(groups.toReversed(), 2) }))).rejects.toThrow(/another group/)
    await expect(all(sourceOf(LINES.map(line => ({ ...line, currency: 'XAU' }))))).rejects.toThrow(
      /unknown currency XAU/,
    )
    const broken = LINES.map(line => ({ ...line, gross: '1.5' }))
    await expect(all(source({ lines: pages(broken, 2) }))).rejects.toThrow(/not a whole number/)
  })

  it('is no report: a share that is not what the running sum grew by', async () => {
    const line = (charge: bigint, tax: bigint): Row => ({
      currency: 'EUR',
      type: 'SALE',
      brand: 'VISA',
      transactions: '1',
      gross: '0',
      fee: `${charge}`,
      commission: '0',
      charge: `${charge}`,
      tax: `${tax}`,
      due: `${charge + tax}`,
    })
    const shares = { shares: [{ result: 'tax', of: 'charge', percent: '50' }] }
    const run = (lines: Row[], tax: bigint) => {
      const charge = BigInt(lines.length)
      const sum = { ...line(charge, tax), transactions: `${lines.length}`, lines: `${lines.length}` }
      return all({ totals: [sum], groups: pages([sum], 1), lines: pages(lines, 2) }, invoice, shares)
    }
    await expect(run([line(1n, 1n), line(1n, 0n)], 1n)).resolves.toHaveLength(4)
    await expect(run([line(1n, 1n), line(1n, 1n)], 2n)).rejects.toThrow(/tax is not its share/)
    await expect(run([line(1n, 0n), line(1n, 1n)], 1n)).rejects.toThrow(/tax is not its share/)
  })
})

describe('a report', () => {
  it('ties out for any ledger in every exponent: lines to groups, groups to totals, net to its parts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(ledgerRow, { maxLength: 40 }), fc.integer({ min: 1, max: 7 }), async (rows, size) => {
        const lines = linesOf(rows)
        const entries = await all(sourceOf(lines, size))
        const total = new Map<string, bigint>()
        let open = { gross: 0n, net: 0n }
        let inGroups = 0n
        for (const entry of entries) {
          if (entry.kind === 'line') {
            open.gross += BigInt(entry.row['gross'] ?? '')
            open.net += BigInt(entry.row['net'] ?? '')
          } else if (entry.kind === 'group') {
            const { row, lines: count, sums } = entry.group
            expect(sums).toMatchObject(open)
            total.set(row['currency'] ?? '', (total.get(row['currency'] ?? '') ?? 0n) + open.net)
            inGroups += count
            open = { gross: 0n, net: 0n }
          } else {
            const { currency = '', sums } = entry.total
            expect(sums['net']).toBe(total.get(currency))
            expect(sums['net']).toBe((sums['gross'] ?? 0n) - (sums['fee'] ?? 0n) - (sums['commission'] ?? 0n))
          }
        }
        expect(inGroups).toBe(BigInt(rows.length))
        expect(entries.filter(({ kind }) => kind === 'line')).toHaveLength(rows.length)
      }),
      { numRuns: 60 },
    )
  })
})

describe('an amount', () => {
  it('is written with the digits of its currency, and never as a floating-point number', () => {
    expect(['JPY', 'EUR', 'KWD', 'CLF'].map(currency => decimal(-5n, currency))).toEqual([
      '-5',
      '-0.05',
      '-0.005',
      '-0.0005',
    ])
    expect(decimal(123_456_789_012_345_678_901_234_567n, 'EUR')).toBe('1234567890123456789012345.67')
    expect(decimal(0n, 'KWD')).toBe('0.000')
    expect(decimal(1n, 'XAU')).toBeUndefined()
    fc.assert(
      fc.property(fc.bigInt(), fc.constantFrom('JPY', 'EUR', 'KWD', 'CLF'), (minor, currency) => {
        expect(BigInt((decimal(minor, currency) ?? '').replace('.', ''))).toBe(minor)
      }),
    )
  })
})
