import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRefusal } from '../../src/errors.ts'
import { type BinRange, BUILT_IN_RANGES, makeBinTable, parseBinRow } from '../../src/token/bin.ts'
import { detectBrand } from '../../src/token/brand.ts'
import { isCountry } from '../../src/token/country.ts'
import { currencies, isCurrency, minorUnit } from '../../src/token/currency.ts'
import { panFrom, reasonOf } from './samples.ts'

describe('a BIN table', () => {
  it('that is empty knows nothing', () => {
    expect(makeBinTable([]).find('4111111111111111')).toBeUndefined()
  })

  it('finds the range with the longest prefix', () => {
    const digits = fc.string({ unit: fc.constantFrom('4', '5'), minLength: 4, maxLength: 11 })
    fc.assert(
      fc.property(fc.uniqueArray(digits, { maxLength: 40 }), digits, (prefixes, start) => {
        const pan = start.padEnd(16, '4')
        const ranges = prefixes.map((prefix, id): BinRange => ({ id, prefix, brand: 'VISA' }))
        const slowly = ranges
          .filter(({ prefix }) => pan.startsWith(prefix))
          .sort((a, b) => b.prefix.length - a.prefix.length)[0]
        expect(makeBinTable(ranges).find(pan)).toBe(slowly)
      }),
    )
  })

  it('has built-in ranges whose ids are their own, whose brands are right and who say that they are for tests', () => {
    expect(new Set(BUILT_IN_RANGES.map(({ id }) => id)).size).toBe(BUILT_IN_RANGES.length)
    expect(new Set(BUILT_IN_RANGES.map(({ prefix }) => prefix)).size).toBe(BUILT_IN_RANGES.length)
    for (const range of BUILT_IN_RANGES) {
      expect(range.id).toBeLessThan(0)
      expect(detectBrand(panFrom(range.prefix, 16))).toBe(range.brand)
      expect(range.issuerName).toContain('Test range')
      expect(isCountry(range.issuerCountry ?? '') && isCurrency(range.currency ?? '', 'current')).toBe(true)
    }
  })
})

describe('a row of a BIN file', () => {
  it.each([
    ['field_required', 'prefix', { brand: 'VISA' }],
    ['field_required', 'brand', { prefix: '411111', brand: '' }],
    ['field_format', 'prefix', { prefix: '411', brand: 'VISA' }],
    ['field_format', 'prefix', { prefix: '411111111111', brand: 'VISA' }],
    ['field_format', 'prefix', { prefix: '4111x1', brand: 'VISA' }],
    ['field_value', 'brand', { prefix: '411111', brand: 'Visa' }],
    ['field_value', 'issuer_name', { prefix: '411111', brand: 'VISA', issuer_name: 'a\nb' }],
    ['field_value', 'issuer_country', { prefix: '411111', brand: 'VISA', issuer_country: 'UK' }],
    ['field_value', 'type', { prefix: '411111', brand: 'VISA', type: 'debit' }],
    ['field_value', 'currency', { prefix: '411111', brand: 'VISA', currency: 'EURO' }],
    ['field_unknown', 'bank', { prefix: '411111', brand: 'VISA', bank: 'x' }],
  ])('is refused: %s of %s', (reason, field, row) => {
    expect(parseBinRow(row as unknown as Record<string, string>)).toEqual({ refused: true, reason, field })
  })

  it('becomes a range; empty cells are absent', () => {
    const row = {
      prefix: '41111111',
      brand: 'VISA',
      issuer_name: 'A Bank',
      issuer_country: 'ZZZ',
      type: '',
      currency: 'LTL',
    }
    expect(parseBinRow(row)).toEqual({
      prefix: '41111111',
      brand: 'VISA',
      issuerName: 'A Bank',
      issuerCountry: 'ZZZ',
      currency: 'LTL',
    })
  })

  it('may be of a local scheme that is configured', () => {
    const row = { prefix: '9792', brand: 'LOCAL' }
    expect([reasonOf(parseBinRow(row)), isRefusal(parseBinRow(row, ['LOCAL']))]).toEqual(['field_value', false])
  })
})

describe('a country', () => {
  it('is one of ISO 3166-1’s alpha-3 codes, or ZZZ', () => {
    expect(['GBR', 'ZZZ', 'GB', 'gbr', 'XKX', 'ENG', ''].map(isCountry)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })
})

describe('a currency', () => {
  it.each('BYR LTL LVL MRO STD USS VEF ZMK BTC FRF DEM ITL ANG BGN CUC HRK ZWL SLL'.split(' '))(
    '%s is only in the list with legacy codes',
    code => expect([isCurrency(code, 'current'), isCurrency(code, 'with-legacy')]).toEqual([false, true]),
  )

  it.each(['EURO', 'eur', 'XFU', '', 'constructor', '__proto__'])('%j is in no list', code => {
    expect([isCurrency(code, 'current'), isCurrency(code, 'with-legacy')]).toEqual([false, false])
    expect(minorUnit(code)).toBeUndefined()
  })

  it('has the digits that ISO 4217 gives it', () => {
    const withUnit = (digits: number) => currencies().filter(code => minorUnit(code) === digits)
    expect(withUnit(0).join(' ')).toBe('BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF')
    expect(withUnit(3).join(' ')).toBe('BHD IQD JOD KWD LYD OMR TND')
    expect(withUnit(4).join(' ')).toBe('CLF UYW')
    for (const code of 'XCG ZWG SLE VED XAD EUR USD HUF IDR COP'.split(' ')) expect(minorUnit(code)).toBe(2)
  })

  it('of metals and tests has none', () => {
    const unitless = currencies().filter(code => minorUnit(code) === undefined)
    expect(unitless).toHaveLength(13)
    expect(unitless.every(code => code.startsWith('X'))).toBe(true)
  })
})
