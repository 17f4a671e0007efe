// The records of a chunk that made tokens, as a result tells of them in columns: one text for the same records, and each
// record is told as in rows.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CreatedColumns, recordsOf } from '../../../src/job/answer/created-columns.ts'
import { textsOf, withoutLost } from '../../../src/job/answer/created-records.ts'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { type CreatedRecord, createdOf } from './created.ts'

const digits = (length: number) => fc.stringMatching(new RegExp(`^[0-9]{${length}}$`))
const created: fc.Arbitrary<Omit<CreatedRecord, 'line'>> = fc.record({
  reference: fc.option(fc.constantFrom('cust-1', "o'b"), { nil: undefined }),
  tokenId: fc.uuid(),
  bin: fc.oneof(digits(6), digits(8)),
  lastFour: digits(4),
  presented: fc.constant('203112abcd'),
  month: fc.integer({ min: 1, max: 12 }),
  year: fc.integer({ min: 2024, max: 2026 }),
  brand: fc.constantFrom('VISA', 'MASTERCARD', null),
  isAdded: fc.boolean(),
})
const other: fc.Arbitrary<Omit<RecordOutcome, 'line'>> = fc.record({
  reference: fc.option(fc.string(), { nil: undefined }),
  outcome: fc.constantFrom('REJECTED', 'FAILED'),
  reason: fc.constantFrom('pan_luhn', 'internal'),
  field: fc.constantFrom('body.card', undefined),
  token: fc.constant(undefined),
})
const one = fc.record({ gap: fc.integer({ min: 1, max: 3 }), record: fc.oneof(created, other), isLost: fc.boolean() })

describe('the columns of a result', () => {
  it('have the text that docs/schema shows, byte for byte', () => {
    const record = {
      reference: undefined,
      presented: '',
      bin: '411111',
      month: 12,
      isAdded: false,
      tokenId: '01234567-89ab-cdef-0123-456789abcdef',
      brand: 'VISA',
    }
    const records: CreatedRecord[] = [
      { ...record, line: 5, lastFour: '0039', year: 2032, brand: null },
      { ...record, line: 2, lastFour: '0021', year: 2031 },
    ]
    const rejected: RecordOutcome = {
      line: 3,
      reference: undefined,
      outcome: 'REJECTED',
      reason: 'row_fields',
      field: undefined,
      token: undefined,
    }
    const { columns = '' } = textsOf([rejected], createdOf(records), true)
    expect(columns).toBe(
      '{"line":[2,5],"reuse_token":"t014D2PF2DBSQQG28T5CY4TQKFFt014D2PF2DBSQQG28T5CY4TQKFF","bin":["411111"],"last_four":"0021,0039","expiry_month":[12],"expiry_year":[2031,2032],"brand":["VISA",""],"reference_outcome":[""],"others":[1]}',
    )
    const schema = readFileSync(new URL('../../../docs/schema/created-columns.json', import.meta.url), 'utf8')
    const { examples } = JSON.parse(schema) as { examples: unknown[] }
    expect(JSON.stringify(examples[0])).toBe(columns)
    expect(createHash('sha256').update(columns).digest('hex')).toBe(
      'e0f43b95f6de8a8be77b8f5d27623732cd4f1adc30f1d24c466ae8c599bddd2f',
    )
  })

  it('have no run of digits that could be a card number', () => {
    const card = {
      bin: '411111',
      lastFour: '1111',
      presented: '',
      month: 12,
      year: 2031,
      brand: 'VISA',
      isAdded: false,
    }
    const four = [4, 1, 2, 3].map(line => ({ ...card, line, reference: undefined, tokenId: `${line}`.repeat(32) }))
    const [, first] = four
    if (first) first.lastFour = '4111'
    const { columns = '' } = textsOf([], createdOf(four), true)
    expect(JSON.parse(columns).last_four).toBe('4111,1111,1111,1111')
    expect(columns).not.toMatch(/[0-9]{12}/)
    expect(holdsPossiblePan(JSON.parse(columns).last_four)).toBe(false)
  })

  it('tell of each record what rows tell, but its reference, and of all others as rows', () => {
    fc.assert(
      fc.property(fc.array(one, { maxLength: 20 }), fc.boolean(), (all, isNamed) => {
        let line = 0
        const some = all.map(({ gap, record, isLost }) => {
          line += gap
          return { ...record, line, isLost }
        })
        const made = some.flatMap(record => ('tokenId' in record ? record : []))
        const lost = made.filter(({ isLost }) => isLost)
        const others = some.flatMap(record => ('outcome' in record ? record : []))
        const texts = (inColumns: boolean) => textsOf(others, withoutLost(createdOf(made, isNamed), lost), inColumns)
        const [rows, columns] = [texts(false), texts(true)]
        expect(rows.columns).toBeUndefined()
        expect(columns.packed).toBe(rows.packed)
        const told = JSON.parse(rows.records) as RecordResult[]
        const read = CreatedColumns.parse(JSON.parse(columns.columns ?? ''))
        const rest = JSON.parse(columns.records) as RecordResult[]
        const spread = recordsOf({ records: rest, columns: read }) ?? []
        const nameless = told.map(record => ({ ...record, reference: undefined }))
        expect(spread.map(record => ({ ...record, reference: undefined }))).toEqual(nameless)
        expect(rest).toEqual(told.filter(({ outcome }) => outcome !== 'CREATED'))
        if (!isNamed)
          expect(spread.some(({ reuse_token, bin, last_four }) => reuse_token ?? bin ?? last_four)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })
})
