// The text of a chunk of transactions in columns: one text for the same lines, in every release, and the same lines as in
// rows.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ledgerText } from '../../../src/job/envelope/digest.ts'
import {
  isColumns,
  spread,
  TEXT_FIELDS,
  type TransactionColumns,
  type TransactionLine,
  without,
} from '../../../src/job/ledger/columns.ts'
import { isPlain, notPlainIn } from '../../../src/job/ledger/plain.ts'
import { OWN_TEXTS } from '../../../src/job/ledger/transaction.ts'
import { columnsOf, linesIn, linesOf, TransactionBatch } from '../../../src/job/transaction-batch.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { inColumns, inColumnsSimply } from './lines.ts'

const ENTITY = '7d9f1c52-3f0e-4a7b-9c1d-2b8e6f4a5d30'
const sample = (index: number) => transactionOf(index, { entity: ENTITY })
const requestOf = (made: object) => ({ batch_id: 'b', chunk: 0, ...made })

const VALUES = [
  ...[
    '',
    'NULL',
    'é',
    '日',
    '\ud83d',
    '"a\\',
    '4111-1111 11111111',
    '411111******1111',
    '9'.repeat(19),
    '-1',
    '0',
    'FEE',
  ],
  ...['2026-02-29T00:00:00Z', '2026-01-01T00:00:00.1234567Z', '2099-12-31', ENTITY.toUpperCase(), 'EUR', 'XTS'],
]
const change = fc.tuple(
  fc.constantFrom(...Object.keys(sample(0)), 'cvv'),
  fc.oneof(fc.constantFrom(...VALUES), fc.constantFrom(undefined, 15, null)),
)
/** Good lines, of which some members are changed or left out, as the parser of JSON makes them. */
const lines = fc.array(fc.tuple(fc.nat(40), fc.array(change, { maxLength: 2 })), { maxLength: 25 }).map(all =>
  all.map(([index, changes], place): TransactionLine => {
    const transaction = JSON.parse(JSON.stringify({ ...sample(index), ...Object.fromEntries(changes) }))
    return { line: place + 2, transaction }
  }),
)

const GOLDEN: TransactionLine[] = [
  { line: 2, transaction: { ...sample(0), clearing_date: undefined } },
  { line: 3, transaction: { amount: 15 } },
  { line: 5, transaction: sample(1) },
]

describe('transactions in columns', () => {
  it('have the text that docs/schema shows, byte for byte', () => {
    const schema = readFileSync(new URL('../../../docs/schema/transaction-batch.json', import.meta.url), 'utf8')
    const { properties } = JSON.parse(schema)
    const { columns, transactions } = inColumns(GOLDEN)
    const text = JSON.stringify(columns)
    expect(text).toBe(JSON.stringify(properties.columns.examples[0]))
    expect(transactions).toEqual([GOLDEN[1]])
    expect(createHash('sha256').update(text).digest('hex')).toBe(
      '49416ce5ef030b77877fd74db36c66cfde8f5cae34a769d5311c2d7901b0e8a7',
    )
    expect(
      createHash('sha256')
        .update(ledgerText(requestOf({ columns, transactions })))
        .digest('hex'),
    ).toBe('9949d9d73e91567f03d9a4644858ae19e002b5099ffa7247d8bd8d9f0a232583')
  })

  it('are the lines that a sender of rows would send, in their order', () => {
    fc.assert(
      fc.property(lines, given => {
        const text = JSON.stringify(inColumns(given))
        expect(text).toBe(JSON.stringify(inColumnsSimply(given)))
        const made = JSON.parse(text)
        expect(isColumns(made.columns)).toBe(true)
        expect(spread(made.columns, made.transactions)).toEqual(given)
        expect(linesIn(made)).toBe(given.length)
        const parsed = TransactionBatch.safeParse(requestOf(made))
        expect(parsed.success).toBe(given.length > 0)
        if (parsed.data) expect(linesOf(parsed.data)).toEqual(given)
      }),
      { numRuns: 500 },
    )
  })

  it('are plain exactly where the same line alone is plain', () => {
    let apart = 0
    fc.assert(
      fc.property(lines, given => {
        const { columns } = inColumns(given)
        const found = notPlainIn(columns)
        apart += found.size
        const taken = spread({ ...columns, others: [] }, [])
        expect([...found].sort((a, b) => a - b)).toEqual(
          taken.flatMap(({ transaction }, at) => (isPlain(transaction) ? [] : [at])),
        )
        expect(spread(without(columns, found), [])).toEqual(taken.filter((_, at) => !found.has(at)))
      }),
      { numRuns: 1_000 },
    )
    expect(apart).toBeGreaterThan(500)
  })

  it('are nothing else: another text is refused as a whole', () => {
    const { columns, transactions } = inColumns(GOLDEN)
    const wrong: [object, string][] = [
      ...[
        { ...columns, more: [] },
        { ...columns, line: [2] },
        { ...columns, line: [2, 0] },
        { ...columns, line: '2' },
      ].map(given => [given, 'field_type'] as [object, string]),
      ...[[], ['SALE', 'SALE'], ['SALE', 'REFUND', 'FEE'], ['SALE', 1], 'SALE', [['SALE'], 'FEE']].map(
        type => [{ ...columns, type }, 'field_type'] as [object, string],
      ),
      ...['', columns.transaction_uid.toUpperCase(), `${columns.transaction_uid}ab`].map(
        uids => [{ ...columns, transaction_uid: uids }, 'field_type'] as [object, string],
      ),
      ...[[1, 1], [-1], [0.5], ['1'], null].map(others => [{ ...columns, others }, 'field_type'] as [object, string]),
      ...[[], [3], [0, 1]].map(others => [{ ...columns, others }, 'field_conflict'] as [object, string]),
      [Object.fromEntries(Object.entries(columns).reverse()), 'field_type'],
      [[], 'field_type'],
    ]
    for (const [given, reason] of wrong) {
      const { error } = TransactionBatch.safeParse(requestOf({ columns: given, transactions }))
      expect(error?.issues, JSON.stringify(given)).toMatchObject([{ path: ['columns'], params: { reason } }])
    }
    expect(TransactionBatch.safeParse(requestOf({ columns, transactions })).success).toBe(true)
  })

  it('hold texts up to 255 UTF-16 units; a line with a longer one stands beside them, and other columns are refused', () => {
    const long = (reference: string) => ({ line: 2, transaction: { ...sample(0), merchant_reference: reference } })
    const after = { line: 3, transaction: sample(1) }
    for (const reference of ['x'.repeat(255), `x${'😀'.repeat(127)}`])
      expect(inColumns([long(reference), after])).toMatchObject({ columns: { line: [2, 3] }, transactions: [] })
    for (const reference of ['x'.repeat(256), '😀'.repeat(128)]) {
      const made = inColumns([long(reference), after])
      expect(made).toMatchObject({ columns: { line: [3], others: [0] }, transactions: [long(reference)] })
      const parsed = TransactionBatch.parse(requestOf(made))
      expect(linesOf(parsed)).toEqual([long(reference), after])
      for (const name of TEXT_FIELDS) {
        const wrong = { ...made.columns, [name]: [reference] }
        const { error } = TransactionBatch.safeParse(requestOf({ ...made, columns: wrong }))
        expect(error?.issues, name).toMatchObject([{ path: ['columns'], params: { reason: 'field_type' } }])
      }
    }
  })

  it('are refused or checked once for all lines, whatever text a column of one value has', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ line: index + 1, transaction: sample(index) }))
    const { columns } = inColumns(many)
    const began = performance.now()
    for (const text of ['4'.repeat(700_000), '4-'.repeat(350_000), '4'.repeat(255), '4 '.repeat(127)]) {
      const same = Object.fromEntries(OWN_TEXTS.map(name => [name, [text]]))
      const request = requestOf({
        columns: { ...columns, ...same, masked_card: ['411111******1111'] },
        transactions: [],
      })
      const { data } = TransactionBatch.safeParse(request)
      expect(data === undefined).toBe(text.length > 255)
      if (data) expect(notPlainIn(columnsOf(data) as TransactionColumns).size).toBe(many.length)
    }
    // Once for each line it would take minutes.
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  it('are at least one line and at most 1,000, with those beside them', () => {
    const many = Array.from({ length: 1_001 }, (_, index) => ({ line: index + 1, transaction: sample(index) }))
    const issuesOf = (given: object) =>
      TransactionBatch.safeParse(requestOf(given)).error?.issues.map(({ path }) => path)
    expect(issuesOf(inColumns(many))).toEqual([['transactions']])
    expect(issuesOf(inColumns(many.slice(1)))).toBeUndefined()
    expect(issuesOf(inColumns([]))).toEqual([['transactions']])
    expect(issuesOf({ transactions: [] })).toEqual([['transactions']])
    expect(issuesOf({ transactions: many })).toEqual([['transactions']])
    expect(issuesOf({ transactions: [], batch_id: '' })).toEqual([['batch_id'], ['transactions']])
    expect(issuesOf({})).toEqual([['transactions']])
    expect(issuesOf({ columns: inColumns(many.slice(1)).columns })).toEqual([['transactions']])
  })
})
