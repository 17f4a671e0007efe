import creditCardType from 'credit-card-type'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Brand, checkBrand, detectBrand, isPossibleLength, shownBin } from '../../src/token/brand.ts'
import { panFrom, reasonOf } from './samples.ts'

/** Both ends of every range that the schemes publish, and the lengths they issue. */
const RANGES: readonly { brand: Brand; prefixes: string[]; lengths: number[] }[] = [
  { brand: 'VISA', prefixes: ['4'], lengths: [13, 16, 19] },
  { brand: 'MASTERCARD', prefixes: ['51', '55', '2221', '2300', '2699', '2720'], lengths: [16] },
  { brand: 'AMEX', prefixes: ['34', '37'], lengths: [15] },
  { brand: 'DINERS', prefixes: ['300', '305', '36', '38', '39'], lengths: [14, 15, 16, 17, 18, 19] },
  { brand: 'DISCOVER', prefixes: ['6011', '644', '649', '65'], lengths: [16, 17, 18, 19] },
  { brand: 'JCB', prefixes: ['3528', '3589'], lengths: [16, 17, 18, 19] },
  { brand: 'JCB', prefixes: ['2131', '1800'], lengths: [15] },
  { brand: 'UPI', prefixes: ['62', '6218', '6271', '6290', '81', '8172', '819'], lengths: [14, 15, 16, 17, 18, 19] },
  {
    brand: 'MAESTRO',
    prefixes: ['5018', '56', '58', '60', '63', '67', '69'],
    lengths: [12, 13, 14, 15, 16, 17, 18, 19],
  },
]

describe('the brand of a card number', () => {
  it.each(['000000', '100000', '3527', '3590', '2220', '2721', '306', '33', '70', '82', '9792', '2200', '504175'])(
    'of %s… is unknown',
    prefix => expect(detectBrand(panFrom(prefix, 16))).toBeUndefined(),
  )

  const cells = RANGES.flatMap(({ brand, prefixes, lengths }) =>
    prefixes.flatMap(prefix => lengths.map(length => ({ brand, prefix, length }))),
  )
  it.each(cells)('of $prefix… with $length digits is $brand', ({ brand, prefix, length }) => {
    const pan = panFrom(prefix, length)
    expect(detectBrand(pan)).toBe(brand)
    expect(isPossibleLength(pan, brand)).toBe(true)
  })

  it('is the one with the longest prefix', () => {
    expect(detectBrand(panFrom('493698', 16))).toBe('MAESTRO')
  })

  it('is never CB', () => {
    const pans = fc.integer({ min: 0, max: 999_999 }).map(prefix => panFrom(String(prefix).padStart(6, '0'), 16))
    fc.assert(fc.property(pans, pan => detectBrand(pan) !== 'CB'))
  })

  it('is what credit-card-type says, where that names one of ours', () => {
    const ours: Record<string, Brand> = {
      'american-express': 'AMEX',
      'diners-club': 'DINERS',
      discover: 'DISCOVER',
      jcb: 'JCB',
      maestro: 'MAESTRO',
      mastercard: 'MASTERCARD',
      visa: 'VISA',
      unionpay: 'UPI',
    }
    const prefixes = fc.integer({ min: 100_000, max: 999_999 }).filter(prefix => !/^(62|81)/.test(String(prefix)))
    fc.assert(
      fc.property(prefixes, prefix => {
        const pan = panFrom(String(prefix), 16)
        const [type] = creditCardType(pan)
        const brand = type && ours[type.type]
        expect(brand === undefined || detectBrand(pan) === brand).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['VISA', 15],
    ['MASTERCARD', 15],
    ['AMEX', 16],
    ['DISCOVER', 15],
    ['JCB', 14],
    ['UPI', 13],
    ['DINERS', 13],
  ] as const)('%s issues none of %d digits', (brand, length) => {
    expect(isPossibleLength('4'.repeat(length), brand)).toBe(false)
  })

  it('that is unknown may have any length', () => {
    expect(isPossibleLength('9'.repeat(12), undefined)).toBe(true)
  })
})

describe('card_brand', () => {
  it.each([
    ['VISA', 'MASTERCARD', 'brand_conflict'],
    ['CB', 'AMEX', 'brand_conflict'],
    ['CB', 'UPI', 'brand_conflict'],
    ['MASTERCARD', 'MAESTRO', 'brand_conflict'],
    ['OTHER', 'VISA', 'field_value'],
    ['OTHER', undefined, 'field_value'],
  ])('%s on a number of %s is refused: %s', (stated, detected, reason) => {
    const refusal = checkBrand(stated, detected, ['LOCAL'])
    expect(reasonOf(refusal)).toBe(reason)
    expect(refusal).toHaveProperty('field', 'body.card_brand')
  })

  it.each([
    [undefined, 'VISA', 'VISA'],
    [undefined, undefined, undefined],
    ['VISA', 'VISA', 'VISA'],
    ['VISA', undefined, 'VISA'],
    ['CB', 'VISA', 'CB'],
    ['CB', 'MASTERCARD', 'CB'],
    ['CB', 'MAESTRO', 'CB'],
    ['CB', undefined, 'CB'],
    ['LOCAL', 'DISCOVER', 'LOCAL'],
    ['LOCAL', undefined, 'LOCAL'],
  ])('%s on a number of %s makes it %s', (stated, detected, brand) => {
    expect(checkBrand(stated, detected, ['LOCAL'])).toBe(brand)
  })
})

describe('the BIN that is shown', () => {
  it('has eight digits for 16-digit numbers of a scope that shows eight, else six', () => {
    const shown = ([13, 15, 16, 19] as const).map(length => [
      shownBin('4'.repeat(length), 8).length,
      shownBin('4'.repeat(length), 6).length,
    ])
    expect(shown).toEqual([
      [6, 6],
      [6, 6],
      [8, 6],
      [6, 6],
    ])
  })
})
