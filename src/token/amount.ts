// Converts amounts that are texts to minor units by moving digits, without arithmetic, so the result is exact. The sign
// isn't checked here.
import type { Reason } from '../errors.ts'
import { minorUnit } from './currency.ts'

const MAJOR = /^(-?)(\d{1,18})(?:\.(\d{1,18}))?$/
const MINOR = /^-?\d{1,18}$/
const DIGITS_MAX = 18

/**
 * The amount in minor units: `12.34` of a currency with two decimals becomes `1234`. More decimals than the currency
 * has are refused, even if they are zeros.
 */
export function minorOf(text: string, currency: string): { minor: string } | { reason: Reason } {
  const exponent = minorUnit(currency)
  if (exponent === undefined) return { reason: 'currency_unknown' }
  const [, sign, whole, decimals = ''] = MAJOR.exec(text) ?? []
  if (whole === undefined) return { reason: 'field_format' }
  if (decimals.length > exponent) return { reason: 'amount_exponent' }
  const digits = `${whole}${decimals.padEnd(exponent, '0')}`.replace(/^0+(?=\d)/, '')
  if (digits.length > DIGITS_MAX) return { reason: 'field_range' }
  return { minor: sign === '-' && digits !== '0' ? `-${digits}` : digits }
}

/** Checks an amount that the file gives in whole minor units. */
export function checkMinor(text: string): { minor: string } | { reason: Reason } {
  return MINOR.test(text) ? { minor: text } : { reason: 'field_format' }
}
