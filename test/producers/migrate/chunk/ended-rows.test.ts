// The rows of results that a chunk's answer makes: the same from an answer in columns as from one in rows.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rowsOf } from '../../../../producers/migrate/chunk/ended-rows.ts'
import { textOf } from '../../../../producers/rows/outcome/result-row.ts'
import type { Row } from '../../../../producers/rows/record.ts'
import { textsOf } from '../../../../src/job/answer/created-records.ts'
import type { Result } from '../../../../src/job/answer/result.ts'
import type { RecordOutcome } from '../../../../src/job/chunk-outcomes.ts'
import { type CreatedRecord, createdOf } from '../../../job/answer/created.ts'

const given = fc.record({
  gap: fc.integer({ min: 1, max: 3 }),
  isSkipped: fc.boolean(),
  isCreated: fc.boolean(),
  isAdded: fc.boolean(),
  reference: fc.constantFrom(undefined, 'cust-1', '=1'),
  echo: fc.constantFrom(undefined, ['a', '']),
  more: fc.constantFrom({}, { fileLine: 9, item: '1.2', repairs: ['date'], onFile: ['nti' as const] }),
  tokenId: fc.uuid(),
  brand: fc.constantFrom('VISA', 'CB', null),
  month: fc.integer({ min: 1, max: 12 }),
  outcome: fc.constantFrom('REJECTED', 'FAILED'),
  reason: fc.constantFrom('reference_pan', 'pan_luhn'),
})
const COLUMNS = { profile: true, owners: true, tokenStatus: true, failedFacet: true, echo: ['one', 'two'] }

describe('the rows of a chunk', () => {
  it('are the same from an answer in columns as from one in rows', () => {
    fc.assert(
      fc.property(fc.array(given, { minLength: 1, maxLength: 20 }), all => {
        let line = 0
        const rows: Row[] = []
        const created: CreatedRecord[] = []
        const others: RecordOutcome[] = []
        for (const { gap, isSkipped, isCreated, isAdded, reference, echo, more, ...one } of all) {
          line += gap
          const skipped = isSkipped ? ('no_card' as const) : undefined
          rows.push({ line, reference, json: '', rejected: undefined, number: '', echo, skipped, ...more })
          const { tokenId, brand, month, outcome, reason } = one
          const card = { bin: '411111', lastFour: '0039', year: 2031, month, brand }
          if (isSkipped) continue
          if (isCreated) created.push({ line, reference, tokenId, presented: '', isAdded, ...card })
          else others.push({ line, reference, outcome, reason, field: undefined, token: undefined } as RecordOutcome)
        }
        const answer = (inColumns: boolean) => {
          const { records, columns } = textsOf(others, createdOf(created), inColumns)
          const told = { records: JSON.parse(records), ...(columns ? { columns: JSON.parse(columns) } : {}) }
          return { code: 200, ...told } as Result
        }
        const ends = [false, true].map(form =>
          rowsOf({ number: 0, position: 0, isLast: true, rows }, answer(form), { startedAt: 0 }),
        )
        expect(ends[1]).toEqual(ends[0])
        expect(textOf(ends[1] ?? [], COLUMNS)).toBe(textOf(ends[0] ?? [], COLUMNS))
      }),
      { numRuns: 300 },
    )
  })

  it('are none of an answer with another number of rows', () => {
    const rows = [{ line: 2 }, { line: 3 }] as Row[]
    const created = { bin: '411111', lastFour: '0039', year: 2031, month: 12, brand: 'VISA', isAdded: false }
    const some = createdOf([{ ...created, line: 2, reference: undefined, tokenId: crypto.randomUUID(), presented: '' }])
    const columns = JSON.parse(textsOf([], some, true).columns ?? '')
    for (const others of [[], [1]]) {
      const result = { code: 200, records: [], columns: { ...columns, others } } as unknown as Result
      const chunk = { number: 0, position: 0, isLast: true, rows }
      expect(() => rowsOf(chunk, result, { startedAt: 0 })).toThrow('broken law')
    }
  })
})
