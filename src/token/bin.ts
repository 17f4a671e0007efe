// The BIN table: looks up issuer data by the first digits of a card number. The ranges come from the operator's file;
// the few built-in ranges are synthetic and cover only the published test numbers.
import { type Refusal, refuse } from '../errors.ts'
import { isBrand } from './brand.ts'
import { isCountry } from './country.ts'
import { isCurrency } from './currency.ts'

export interface BinRange {
  id: number
  /** 4 to 11 digits. */
  prefix: string
  brand: string
  issuerName?: string
  /** ISO 3166-1 alpha-3, or ZZZ. */
  issuerCountry?: string
  type?: 'DEBIT' | 'CREDIT'
  variant?: string
  /** ISO 4217, current or legacy. */
  currency?: string
}

export interface BinTable {
  /** The range with the longest prefix that this number has. */
  find(pan: string): BinRange | undefined
}

/** If two ranges have the same prefix, the later one is used. */
export function makeBinTable(ranges: Iterable<BinRange>): BinTable {
  const byLength = new Map<number, Map<string, BinRange>>()
  for (const range of ranges) {
    const { length } = range.prefix
    const known = byLength.get(length) ?? new Map<string, BinRange>()
    byLength.set(length, known.set(range.prefix, range))
  }
  const longestFirst = [...byLength].sort(([a], [b]) => b - a).map(([length, known]) => ({ length, known }))
  return {
    find(pan) {
      for (const { length, known } of longestFirst) {
        const range = known.get(pan.slice(0, length))
        if (range) return range
      }
      return undefined
    },
  }
}

const test = (id: number, prefix: string, brand: string, type: 'DEBIT' | 'CREDIT', country: string, currency: string) =>
  ({
    id,
    prefix,
    brand,
    issuerName: `Test range ${brand}`,
    issuerCountry: country,
    type,
    variant: 'TEST',
    currency,
  }) as const

/** Tokens store the id of a range. Built-in ranges have negative ids, and no id is ever given to another range. */
export const BUILT_IN_RANGES: readonly BinRange[] = [
  test(-1, '411111', 'VISA', 'CREDIT', 'GBR', 'GBP'),
  test(-2, '401288', 'VISA', 'DEBIT', 'DEU', 'EUR'),
  test(-3, '422222', 'VISA', 'CREDIT', 'FRA', 'EUR'),
  test(-4, '424242', 'VISA', 'CREDIT', 'USA', 'USD'),
  test(-5, '400000', 'VISA', 'DEBIT', 'AUS', 'AUD'),
  test(-6, '555555', 'MASTERCARD', 'CREDIT', 'GBR', 'GBP'),
  test(-7, '510510', 'MASTERCARD', 'DEBIT', 'FRA', 'EUR'),
  test(-8, '222300', 'MASTERCARD', 'CREDIT', 'DEU', 'EUR'),
  test(-9, '378282', 'AMEX', 'CREDIT', 'USA', 'USD'),
  test(-10, '371449', 'AMEX', 'CREDIT', 'NZL', 'NZD'),
  test(-11, '601111', 'DISCOVER', 'CREDIT', 'USA', 'USD'),
  test(-12, '305693', 'DINERS', 'CREDIT', 'USA', 'USD'),
  test(-13, '353011', 'JCB', 'CREDIT', 'JPN', 'JPY'),
  test(-14, '356600', 'JCB', 'CREDIT', 'JPN', 'JPY'),
  test(-15, '620001', 'UPI', 'DEBIT', 'CHN', 'CNY'),
  test(-16, '675964', 'MAESTRO', 'DEBIT', 'IRL', 'EUR'),
]

export const BIN_COLUMNS = ['prefix', 'brand', 'issuer_name', 'issuer_country', 'type', 'variant', 'currency'] as const
type BinColumn = (typeof BIN_COLUMNS)[number]

const PRINTABLE = /^[^\p{Cc}\u2028\u2029\ud800-\udfff]{1,100}$/u

const ACCEPTS: Record<BinColumn, (value: string, localSchemes: readonly string[]) => boolean> = {
  prefix: value => /^[0-9]{4,11}$/.test(value),
  brand: (value, localSchemes) => isBrand(value) || localSchemes.includes(value),
  issuer_name: value => PRINTABLE.test(value),
  issuer_country: value => isCountry(value),
  type: value => value === 'DEBIT' || value === 'CREDIT',
  variant: value => PRINTABLE.test(value),
  currency: value => isCurrency(value, 'with-legacy'),
}

/**
 * Parses one row of a BIN file: columns `prefix` and `brand`, optionally the others of BIN_COLUMNS; '' counts as
 * absent. A refusal names the column.
 */
export function parseBinRow(
  row: Readonly<Record<string, string>>,
  localSchemes: readonly string[] = [],
): Omit<BinRange, 'id'> | Refusal {
  const unknown = Object.keys(row).find(column => !(BIN_COLUMNS as readonly string[]).includes(column))
  if (unknown !== undefined) return refuse('field_unknown', unknown)
  for (const column of BIN_COLUMNS) {
    const value = row[column] ?? ''
    if (value === '') {
      if (column === 'prefix' || column === 'brand') return refuse('field_required', column)
    } else if (!ACCEPTS[column](value, localSchemes)) {
      return refuse(column === 'prefix' ? 'field_format' : 'field_value', column)
    }
  }
  const { prefix = '', brand = '', issuer_name, issuer_country, type, variant, currency } = row
  return {
    prefix,
    brand,
    ...(issuer_name ? { issuerName: issuer_name } : {}),
    ...(issuer_country ? { issuerCountry: issuer_country } : {}),
    ...(type ? { type: type as 'DEBIT' | 'CREDIT' } : {}),
    ...(variant ? { variant } : {}),
    ...(currency ? { currency } : {}),
  }
}
