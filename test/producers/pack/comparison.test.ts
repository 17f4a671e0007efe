import { describe, expect, it } from 'vitest'
import { compareTotals } from '../../../producers/pack/comparison.ts'
import type { MigrationTotal } from '../../../producers/pack/total.ts'

const sum = (digit: string, rows = 5_000) => ({ rows, sha256: digit.repeat(64) })
const vault: MigrationTotal = {
  migration: 'spring',
  computed_at: '2030-01-01T00:00:00.000Z',
  ...sum('a'),
  by_brand: { VISA: sum('b', 3_000), AMEX: sum('c', 2_000) },
  exceptions: [],
}

describe('the totals of both sides', () => {
  it('are equal if count and digest are, whatever the sender says of brands', () => {
    expect(compareTotals(vault, sum('a'))).toEqual({ equal: true, brands_differ: [], brands_of_one_side: [] })
    expect(compareTotals(vault, { ...sum('a'), rows: 4_999 }).equal).toBe(false)
    expect(compareTotals(vault, sum('d')).equal).toBe(false)
  })

  it('name the brands that differ, and those of one side', () => {
    const theirs = { ...sum('d'), by_brand: { VISA: sum('b', 3_000), AMEX: sum('c', 1_999), JCB: sum('e') } }
    expect(compareTotals(vault, theirs)).toEqual({
      equal: false,
      brands_differ: ['AMEX'],
      brands_of_one_side: ['JCB'],
    })
    expect(compareTotals(vault, sum('d'))).toMatchObject({ brands_differ: [], brands_of_one_side: [] })
  })
})
