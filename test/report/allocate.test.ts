import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openAllocation, roundHalfAway } from '../../src/report/allocate.ts'

const amounts = fc.array(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), { maxLength: 60 })
const percents = fc
  .tuple(fc.nat(100), fc.nat(9999))
  .map(([whole, part]) => (whole === 100 ? '100' : `${whole}.${part}`))

describe('an allocation', () => {
  it('has parts that add up to the rounded percentage of the sum, in whatever order they come', () => {
    fc.assert(
      fc.property(amounts, percents, (given, percent) => {
        const allocation = openAllocation(percent)
        const parts = given.map(amount => allocation.next(amount))
        const [whole = '', part = ''] = percent.split('.')
        const scale = 10n ** BigInt(part.length)
        const sum = given.reduce((total, amount) => total + amount, 0n)
        const expected = roundHalfAway(sum * BigInt(whole + part), 100n * scale)
        expect(parts.reduce((total, each) => total + each, 0n)).toBe(expected)
        expect(allocation.total()).toBe(expected)
      }),
    )
  })

  it('has no part that is further than one minor unit from its exact value', () => {
    fc.assert(
      fc.property(amounts, percents, (given, percent) => {
        const [whole = '', part = ''] = percent.split('.')
        const numerator = BigInt(whole + part)
        const denominator = 100n * 10n ** BigInt(part.length)
        const allocation = openAllocation(percent)
        for (const amount of given) {
          const off = allocation.next(amount) * denominator - amount * numerator
          expect(off <= denominator && off >= -denominator).toBe(true)
        }
      }),
    )
  })

  it('rounds half away from zero, on both sides of it', () => {
    expect([5n, -5n, 4n, -4n, 15n, -15n].map(n => roundHalfAway(n, 10n))).toEqual([1n, -1n, 0n, 0n, 2n, -2n])
    const allocation = openAllocation('50')
    expect([1n, 1n, 1n, 1n].map(amount => allocation.next(amount))).toEqual([1n, 0n, 1n, 0n])
  })
})
