// Plain lines are read by their bytes, and others as objects. Which of the two is taken shows in nothing: the rows, the
// reasons of refusals, where chunks are cut, and both forms of their requests.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutRows, measureRows } from '../../../producers/ingest/chunks.ts'
import type { RefusedRow } from '../../../producers/ingest/record.ts'
import type { RowOptions } from '../../../producers/ingest/rows.ts'
import type { TransactionLine } from '../../../src/job/ledger/columns.ts'
import { LEDGER_CHUNK } from '../../../src/job/transaction-batch.ts'
import { inColumns, inColumnsSimply } from '../../job/ledger/lines.ts'
import { inPieces } from '../rows/bytes.ts'
import { type ReadRow, read, readSlowly } from './read.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from './sample.ts'

const ENTITY = '7d9f1c52-3f0e-4a7b-9c1d-2b8e6f4a5d30'
const CSV: RowOptions = { format: 'csv', ignoreUnknown: true }
const NAMES = CSV_HEADER.split(',')
const cellsOf = (index: number) => csvRowOf(transactionOf(index, { entity: ENTITY })).split(',')

const AMOUNTS = [
  ...['', '0', '-0', '0.00', '-0.00', '007', '-007.50', '1.5', '12.', '.5', '-', '1.2.3', '1,5', '+1', ' 1', '1e3'],
  ...['999999999999999', '9999999999999', '1000000000000000', '999999999999999999', '9999999999999999.99', '12.345'],
]
const CELLS = [
  ...['', 'x'.repeat(255), 'x'.repeat(256), 'é', 'a\\b', 'a\tb', '"a"', '"a,b"', '"a\nb"', '\ud83d', '~ !#', 'a\x7f'],
  ...[
    '2026-01-01',
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00+02:00',
    '2026-01-01 00:00:00z',
    'TTTTTTTTTTTTTTTTTTTZ',
  ],
  ...['4111111111111111', '4111 1111 1111 1111', '41111111****1111', '4111111111111111*', '*', '1234', ENTITY],
  ...['EUR', 'eur', 'EURO', 'XTS', 'BTC', 'JPY', 'CLF', ENTITY.toUpperCase(), ENTITY, 'g'.repeat(36), 'SALE'],
]
const change = fc.oneof(
  fc.tuple(fc.constantFrom('amount', 'fee', 'commission'), fc.constantFrom(...AMOUNTS)),
  fc.tuple(
    fc.constantFrom('amount', 'fee', 'commission'),
    fc
      .tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.constantFrom('', '.1', '.12', '.123', '.1234'))
      .map(t => t.join('')),
  ),
  fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...CELLS)),
)
const row = fc
  .tuple(fc.nat(40), fc.oneof(fc.constant([]), fc.array(change, { maxLength: 2 })))
  .map(([index, changes]) =>
    Object.assign(Object.fromEntries(NAMES.map((n, at) => [n, cellsOf(index)[at]])), Object.fromEntries(changes)),
  )
/** Rows, empty lines and lines with too few or too many cells. */
const line = fc.oneof(
  { weight: 10, arbitrary: row },
  { weight: 1, arbitrary: fc.constantFrom('', 'a,b', `${','.repeat(40)}`, '"open') },
)
const header = fc
  .tuple(
    fc.shuffledSubarray(
      NAMES.filter(
        name => !['transaction_uid', 'entity_uid', 'type', 'currency', 'created_at', 'amount'].includes(name),
      ),
    ),
    fc.subarray(['amount', 'fee', 'commission']),
    fc.boolean(),
  )
  .chain(([more, minor, own]) =>
    fc
      .shuffledSubarray(
        ['transaction_uid', 'entity_uid', 'type', 'currency', 'created_at', 'amount', ...more, ...(own ? ['own'] : [])],
        { minLength: 6 + more.length + (own ? 1 : 0) },
      )
      .map(names => ({ names, titles: names.map(name => (minor.includes(name) ? `${name}_minor` : name)) })),
  )
const file = fc
  .tuple(
    header,
    fc.array(line, { minLength: 1, maxLength: 25 }),
    fc.constantFrom('\n', '\r\n'),
    fc.boolean(),
    fc.nat(2),
  )
  .map(([{ names, titles }, lines, end, isEnded, empty]) => {
    const texts = lines.map(given =>
      typeof given === 'string' ? given : names.map(name => given[name] ?? 'own').join(','),
    )
    return `${end.repeat(empty)}${titles.join(',')}${end}${texts.join(end)}${isEnded ? end : ''}`
  })

describe('a line of CSV that is read by its bytes', () => {
  it('is the row that it would be as an object, to the byte', async () => {
    let plain = 0
    let all = 0
    await fc.assert(
      fc.asyncProperty(file, fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 5 }), async (text, sizes) => {
        const slow = await readSlowly(text, CSV)
        const got = await read(text, CSV, sizes)
        expect(JSON.stringify(got.rows)).toBe(JSON.stringify(slow))
        plain += got.plain
        all += slow.length
      }),
      { numRuns: 1_500 },
    )
    expect(plain).toBeGreaterThan(all / 3)
    expect(plain).toBeLessThan(all)
  })

  it('stands in the chunk where it would stand as an object, in both forms', async () => {
    await fc.assert(
      fc.asyncProperty(file, fc.integer({ min: 1, max: 6 }), async (text, size) => {
        const expected = cutSlowly(await readSlowly(text, CSV), size)
        expect(await cut(text, size)).toEqual(expected)
      }),
      { numRuns: 700 },
    )
  })

  it('is not kept in memory with all that the reader refuses', async () => {
    const text = [CSV_HEADER, ...Array.from({ length: 5_000 }, () => 'too,few,fields')].join('\n')
    const chunks = await cut(text, 500)
    expect(chunks.map(({ refused }) => refused.length)).toEqual([...new Array(10).fill(500), 0])
  })

  it('counts in the bytes of a chunk as it would as an object', async () => {
    const long = (index: number) => {
      const cells = cellsOf(index)
      // Quotes take six times their length in the bound, and let the line be read as an object.
      const reference = index % 3 === 0 ? `"${'""'.repeat(100)}"` : 'r'.repeat(255)
      return cells.with(2, reference).with(14, 'm'.repeat(250)).with(16, 'c'.repeat(250)).join(',')
    }
    const text = [CSV_HEADER, ...Array.from({ length: 1_500 }, (_, index) => long(index))].join('\n')
    const chunks = await cut(text, 1_000)
    expect(chunks).toEqual(cutSlowly(await readSlowly(text, CSV), 1_000))
    expect(chunks.length).toBeGreaterThan(2)
  })
})

interface Cut {
  columns: string | undefined
  rows: string | undefined
  uids: string[]
  refused: readonly RefusedRow[]
}

const cutOf = (lines: readonly TransactionLine[] | undefined, refused: readonly RefusedRow[]): Cut => ({
  columns: lines && JSON.stringify(inColumnsSimply(lines)),
  rows: lines && JSON.stringify({ transactions: lines }),
  uids: lines?.map(({ transaction }) => String(transaction['transaction_uid'] ?? '')) ?? [],
  refused,
})

async function cut(text: string, size: number): Promise<Cut[]> {
  const chunks: Cut[] = []
  for await (const { chunk, refused } of cutRows(inPieces(text), CSV, size)) {
    expect(chunk?.number ?? chunks.length).toBeLessThanOrEqual(chunks.length)
    const rows = chunk?.lines.rows().transactions
    if (chunk) expect(JSON.stringify(inColumns(rows ?? []))).toBe(JSON.stringify(chunk.lines.columns()))
    chunks.push({
      columns: chunk && JSON.stringify(chunk.lines.columns()),
      rows: rows && JSON.stringify({ transactions: rows }),
      uids: rows?.map(({ line }) => chunk?.lines.uidOf(line) ?? '') ?? [],
      refused,
    })
  }
  const rows = chunks.reduce((sum, { uids }) => sum + uids.length, 0)
  const total = chunks.reduce((sum, { refused }) => sum + refused.length, rows)
  const measured = measureRows(inPieces(text), CSV, size)
  if (total === 0) await expect(measured).rejects.toThrow('The file holds no rows.')
  else expect(await measured).toEqual({ total, rows, chunks: chunks.filter(chunk => chunk.rows).length })
  return chunks
}

/** Where chunks are cut: at `size` lines, and before the bound of their bytes would be passed. */
function cutSlowly(all: readonly ReadRow[], size: number): Cut[] {
  const chunks: Cut[] = []
  let lines: TransactionLine[] = []
  let bytes = 0
  let refused: RefusedRow[] = []
  for (const { row, least } of all) {
    if ('reason' in row) {
      refused.push(row)
      if (refused.length === size) {
        chunks.push(cutOf(undefined, refused))
        refused = []
      }
      continue
    }
    const isComplete = lines.length === size || (lines.length > 0 && bytes + least > LEDGER_CHUNK.bytesMax)
    if (isComplete) {
      chunks.push(cutOf(lines, refused))
      lines = []
      refused = []
    }
    bytes = (isComplete ? 0 : bytes) + least
    lines.push(row)
  }
  return [...chunks, cutOf(lines.length > 0 ? lines : undefined, refused)]
}
