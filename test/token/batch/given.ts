// The fields that a line of a batch may give: few values, so that lines often give the same.
import fc from 'fast-check'
import type { Given } from '../../../src/token/decide.ts'

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
export const given: fc.Arbitrary<Given> = fc
  .record({
    // Expired, of this month, and later ones; ties are wanted.
    expiry: optional(fc.constantFrom([1, 2026], [11, 2026], [12, 2026], [1, 2029], [12, 2028])),
    cardHolderName: optional(fc.constantFrom('A', 'B', 'C')),
    cardHolderEmail: optional(fc.constantFrom('a@example.org', 'b@example.org')),
    cardSequence: optional(fc.constantFrom('1', '2')),
    start: optional(fc.constantFrom([1, 2020], [2, 2021])),
    cardBrand: optional(fc.constantFrom('CB', 'VISA')),
    tokenExpiryDate: optional(fc.constantFrom('2026-11-21', '2027-01-01', '2028-01-01')),
    tokenType: optional(fc.constantFrom('REUSE' as const, 'ANALYTICS' as const, 'REUSE_AND_ANALYTICS' as const)),
  })
  .map(({ expiry, start, ...rest }) => {
    const all = {
      ...rest,
      expiryMonth: expiry?.[0],
      expiryYear: expiry?.[1],
      startMonth: start?.[0],
      startYear: start?.[1],
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Given
  })
