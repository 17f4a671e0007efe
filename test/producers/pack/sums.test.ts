// Figures that a pack states twice must agree: the counterparty often has no results to count again.
import { describe, expect, it } from 'vitest'
import type { Pack } from '../../../producers/pack/pack.ts'
import { contradictionOf } from '../../../producers/pack/sums.ts'
import { aPack } from './a-pack.ts'

const {
  counts,
  total: { vault },
} = aPack
const cell = { brand: null, expiry_year: null, reason: null }

describe('the sums of a pack', () => {
  it('hold where all parts say the same, with a total and without', () => {
    expect(contradictionOf(aPack)).toBeUndefined()
    const { total: _, ...without } = aPack
    const exceptions = { ...aPack.exceptions, rows: 3, open: 0 }
    expect(contradictionOf({ ...without, exceptions })).toBeUndefined()
  })

  const [created, duplicate, ...others] = aPack.cells
  it.each<[string, Partial<Pack>, RegExp]>([
    ['sums', { counts: { ...counts, CREATED: 6 } }, /sums.*manifests/],
    [
      'cells that have the right sum',
      { cells: [{ ...cell, outcome: 'CREATED', rows: 4 }, { ...cell, outcome: 'DUPLICATE', rows: 2 }, ...others] },
      /cells/,
    ],
    ['a cell too few', { cells: [created, ...others].flatMap(one => one ?? []) }, /cells/],
    ['a cell too many', { cells: [...aPack.cells, ...(duplicate ? [duplicate] : [])] }, /cells/],
    [
      'exceptions that are not those of the counts',
      { exceptions: { ...aPack.exceptions, rows: 3, open: 0 } },
      /exceptions/,
    ],
    ['exceptions that are neither decided nor open', { exceptions: { ...aPack.exceptions, open: 0 } }, /decisions/],
    ['decisions without their words', { exceptions: { ...aPack.exceptions, by_decision: [] } }, /decisions/],
    ['a total of more rows', { total: { vault: { ...vault, rows: 6 } } }, /total/],
  ])('do not hold with %s', (_, change, says) => {
    expect(contradictionOf({ ...aPack, ...change })).toMatch(says)
  })
})
