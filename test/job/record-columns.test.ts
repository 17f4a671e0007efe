// The text of a chunk in columns: the same records give the same text in every release, and are read as from rows.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ColumnRecord,
  columnLines,
  readColumns,
  rowOf,
  rowUnits,
  spreadColumns,
} from '../../src/job/record-columns.ts'

const text = fc.string({ unit: fc.constantFrom('a', 'B', ' ', '1', 'é', 'ß', '日', "'", '\u007f'), maxLength: 12 })
const column: fc.Arbitrary<ColumnRecord> = fc.record({
  line: fc.integer({ min: 1, max: 2_147_483_647 }),
  reference: text,
  cardNumber: text,
  cardholderName: text,
  expiryMonth: fc.integer({ min: 1, max: 12 }),
  expiryYear: fc.integer({ min: 1900, max: 2999 }),
})
const other = fc.constantFrom('{"line":1}', '{"line":2,"rejected":{"reason":"row_fields"}}', 'no JSON', '日')
const records = fc.array(fc.oneof({ weight: 5, arbitrary: column }, { weight: 1, arbitrary: other }), { maxLength: 20 })
const blockOf = (lines: readonly string[]) => Buffer.from(lines.join('\n'))

const GOLDEN = [
  {
    line: 2,
    reference: 'cust-1',
    cardNumber: '4111110000000021',
    expiryMonth: 1,
    expiryYear: 2031,
    cardholderName: 'ANNA MÜLLER',
  },
  '{"line":3,"rejected":{"reason":"row_fields"}}',
  { line: 4, reference: '', cardNumber: '4111110000000039', expiryMonth: 12, expiryYear: 2032, cardholderName: '' },
] as const

describe('a chunk in columns', () => {
  it('has the text that docs/schema shows, byte for byte', () => {
    const schema = readFileSync(new URL('../../docs/schema/record-columns.json', import.meta.url), 'utf8')
    const { examples } = JSON.parse(schema) as { examples: unknown[] }
    const lines = columnLines(GOLDEN)
    expect(lines).toEqual([
      '{"line":[2,4],"reference":["cust-1",""],"cardNumber":["4111110000000021","4111110000000039"],"expiryMonth":[1,12],"expiryYear":[2031,2032],"cardholderName":["ANNA MÜLLER",""],"others":[1]}',
      '{"line":3,"rejected":{"reason":"row_fields"}}',
    ])
    expect(JSON.stringify(examples[0])).toBe(lines[0])
    expect(createHash('sha256').update(blockOf(lines)).digest('hex')).toBe(
      '8bee5e966597e014479021df7695c81e51aebadd9e12e8c615863f88c2f39ec4',
    )
  })

  it('is spread into rows of JSON whose bytes never change: they are in the digest of a chunk that is sent again', () => {
    const [first, , last] = GOLDEN
    expect(rowOf(first)).toBe(
      '{"line":2,"reference":"cust-1","request":{"card":{"cardNumber":"4111110000000021","expiryMonth":1,"expiryYear":2031,"cardholderName":"ANNA MÜLLER"}}}',
    )
    expect(rowOf(last)).toBe(
      '{"line":4,"request":{"card":{"cardNumber":"4111110000000039","expiryMonth":12,"expiryYear":2032}}}',
    )
    expect(rowOf({ ...first, reference: 'a"\\\u0001\ud800', cardholderName: "O'NEIL\u007f" })).toBe(
      '{"line":2,"reference":"a\\"\\\\\\u0001\\ud800","request":{"card":{"cardNumber":"4111110000000021","expiryMonth":1,"expiryYear":2031,"cardholderName":"O\'NEIL\u007f"}}}',
    )
  })

  it('is spread into the rows that a sender of rows would send, in their order', () => {
    fc.assert(
      fc.property(records, some => {
        const rows = some.map(record => `${typeof record === 'string' ? record : rowOf(record)}\n`)
        expect(spreadColumns(blockOf(columnLines(some)), some.length)?.toString('utf8')).toBe(rows.join(''))
      }),
      { numRuns: 300 },
    )
  })

  it('knows how long a row would be without making it', () => {
    fc.assert(
      fc.property(column, record => {
        expect(rowUnits(record)).toBe(rowOf(record).length)
        expect(JSON.stringify(JSON.parse(rowOf(record)))).toBe(rowOf(record))
      }),
      { numRuns: 300 },
    )
  })

  it('never has as many lines as records, so that a worker that takes it for rows refuses it as a whole', () => {
    fc.assert(
      fc.property(records, some => {
        expect(columnLines(some)).not.toHaveLength(some.length)
      }),
      { numRuns: 300 },
    )
    const one = columnLines([GOLDEN[0]])
    expect(one).toEqual([expect.stringContaining('"line":[]'), rowOf(GOLDEN[0])])
  })

  it('is nothing else: another text is no chunk in columns', () => {
    const [head = '', ...others] = columnLines(GOLDEN)
    const without = (name: string) => head.replace(new RegExp(`"${name}":\\[[^\\]]*\\],?`), '')
    const wrong = [
      ...['', '[]', 'null', '7', '{', rowOf({ ...GOLDEN[0], line: 1 }), without('line'), without('expiryYear')],
      ...[head.replace('"line":[2,4]', '"line":[2]'), head.replace('"line":[2,4]', '"line":2')],
      ...['[]', '[-1]', '[3]', '[0.5]', '["1"]', '[1,2]', '1'].map(places =>
        head.replace('"others":[1]', `"others":${places}`),
      ),
      head.replace('{', '{"cvv":["1","2"],'),
    ]
    for (const text of wrong) expect(readColumns(blockOf([text, ...others]), 3), text).toBeUndefined()
    expect(readColumns(blockOf([head]), 3)).toBeUndefined()
    expect(readColumns(Buffer.from([0xff, 0x0a]), 3)).toBeUndefined()
    for (const records of [1, 2, 4, 1_000]) expect(readColumns(blockOf([head, ...others]), records)).toBeUndefined()
    expect(readColumns(blockOf([head, ...others]), 3)).toBeDefined()
  })

  it('of a hostile sender is refused before its records are read', () => {
    const names = ['line', 'reference', 'cardNumber', 'expiryMonth', 'expiryYear', 'cardholderName']
    const columns = (value: string, places = '') =>
      `{${names.map(name => `"${name}":[${value}]`).join()},"others":[${places}]}`
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    const joined =
      '{"line,reference":[],"cardNumber":[],"expiryMonth":[],"expiryYear":[],"cardholderName":[],"others":[]}'
    for (const text of [columns(`${deep},${deep}`), columns('{},{}'), columns('1'), joined])
      for (const records of [0, 1, 2]) expect(readColumns(Buffer.from(text), records)).toBeUndefined()
    const many = 150_000
    const places = Array.from({ length: many }, (_, place) => place).join()
    const block = Buffer.from(`${columns(new Array(1_000).fill('0').join(), places)}\n${'1\n'.repeat(many)}`)
    const before = performance.now()
    expect(spreadColumns(block, 1_000)).toBeUndefined()
    expect(spreadColumns(block, many + 1_000)?.length).toBeGreaterThan(many)
    // Quadratic work would take minutes.
    expect(performance.now() - before).toBeLessThan(30_000)
  })
})
