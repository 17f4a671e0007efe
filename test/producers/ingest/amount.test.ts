import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { momentOf } from '../../../producers/ingest/record.ts'
import { minorOf } from '../../../src/token/amount.ts'

describe('an amount in major units', () => {
  it.each([
    ['', 'EUR', 'field_format'],
    ['.5', 'EUR', 'field_format'],
    ['5.', 'EUR', 'field_format'],
    ['+5', 'EUR', 'field_format'],
    ['1,234.00', 'EUR', 'field_format'],
    ['1e3', 'EUR', 'field_format'],
    ['0x10', 'EUR', 'field_format'],
    [' 1', 'EUR', 'field_format'],
    ['--1', 'EUR', 'field_format'],
    ['1.234', 'EUR', 'amount_exponent'],
    ['1.230', 'EUR', 'amount_exponent'],
    ['1.0', 'JPY', 'amount_exponent'],
    ['1.2345', 'KWD', 'amount_exponent'],
    ['1.23456', 'CLF', 'amount_exponent'],
    ['99999999999999999', 'EUR', 'field_range'],
    ['1', 'XTS', 'currency_unknown'],
    ['1', 'eur', 'currency_unknown'],
    ['1', 'XAU', 'currency_unknown'],
  ])('%j of %s is refused', (text, currency, reason) => {
    expect(minorOf(text, currency)).toEqual({ reason })
  })

  it.each([
    ['12.34', 'EUR', '1234'],
    ['12.3', 'EUR', '1230'],
    ['-0.05', 'EUR', '-5'],
    ['-0.00', 'EUR', '0'],
    ['007', 'JPY', '7'],
    ['1.001', 'KWD', '1001'],
    ['1.0001', 'CLF', '10001'],
    ['9999999999999999.99', 'EUR', '999999999999999999'],
  ])('%j of %s is %s minor units', (text, currency, minor) => {
    expect(minorOf(text, currency)).toEqual({ minor })
  })

  it('is the number of minor units that it was made of, in every exponent', () => {
    const exponents = { JPY: 0, EUR: 2, KWD: 3, CLF: 4 }
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 18n) + 1n, max: 10n ** 18n - 1n }),
        fc.constantFrom('JPY', 'EUR', 'KWD', 'CLF'),
        (minor, currency) => {
          const exponent = exponents[currency]
          const [size, digits] = [minor < 0n ? -minor : minor, 10n ** BigInt(exponent)]
          const decimals = exponent === 0 ? '' : `.${(size % digits).toString().padStart(exponent, '0')}`
          expect(minorOf(`${minor < 0n ? '-' : ''}${size / digits}${decimals}`, currency)).toEqual({
            minor: String(minor),
          })
        },
      ),
    )
  })
})

describe('a moment of a file', () => {
  it.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00Z'],
    ['2026-03-01T12:00:00.123456Z', '2026-03-01T12:00:00.123456Z'],
    ['2026-03-01T00:30:00.5+01:00', '2026-02-28T23:30:00.5Z'],
    ['2026-03-01 12:00:00-05:30', '2026-03-01T17:30:00Z'],
    ['2026-03-01', '2026-03-01T00:00:00Z'],
    ['yesterday', 'yesterday'],
    ['2026-03-01T12:00:00', '2026-03-01T12:00:00'],
    ['2026-03-01T25:00:00+01:00', '2026-03-01T25:00:00+01:00'],
  ])('%s goes on as %s', (text, moment) => {
    expect(momentOf(text)).toBe(moment)
  })
})
