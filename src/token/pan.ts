// The card number's own form: digits, Luhn, masking, and whether a text gives it away. What card it is of is brand.ts.
import type { Reason } from '../errors.ts'

export const PAN_LENGTH = { least: 12, most: 19 } as const
const ZERO = 48

/** Why this is no card number; undefined where it is one. */
export function panFault(pan: string): Extract<Reason, 'pan_format' | 'pan_luhn'> | undefined {
  const { length } = pan
  if (length < PAN_LENGTH.least || length > PAN_LENGTH.most) return 'pan_format'
  let sum = 0
  for (let index = 0; index < length; index++) {
    const digit = pan.charCodeAt(index) - ZERO
    if (digit < 0 || digit > 9) return 'pan_format'
    // Every second digit counts twice, starting beside the last one.
    if (((length - index) & 1) === 1) sum += digit
    else sum += digit < 5 ? digit * 2 : digit * 2 - 9
  }
  return sum % 10 === 0 || isWithoutLuhn(pan) ? undefined : 'pan_luhn'
}

/** UnionPay issues numbers without a valid check digit. */
function isWithoutLuhn(pan: string): boolean {
  return pan.startsWith('62') || pan.startsWith('81')
}

/** Stars and the last four. */
export function maskPan(pan: string): string {
  return pan.slice(-4).padStart(pan.length, '*')
}

/** Does the text hold this card number, whatever stands between its digits? */
export function holdsPan(text: string, pan: string): boolean {
  if (text.length < pan.length) return false
  const digits = digitsOf(text)
  return digits.length >= pan.length && digits.includes(pan)
}

const FOREIGN = /[^\0-\x7f]/

// Full-width digits and their like count as what they look like.
function digitsOf(text: string): string {
  return (FOREIGN.test(text) ? text.normalize('NFKC') : text).replace(/\D+/g, '')
}
