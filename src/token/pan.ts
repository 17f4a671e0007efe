// The form of a card number: digits, Luhn, masking, and whether a text holds it. Brands are in brand.ts.
import type { Reason } from '../errors.ts'
import { countDigits } from './unicode-digits.ts'

export const PAN_LENGTH = { least: 12, most: 19 } as const
/** The longest number that is known as one with zeros in front of it. */
export const PADDED_LENGTH_MAX = 40
const ZERO = 48

/** Why the text isn't a card number; undefined if it is one. */
export function panFault(pan: string): Extract<Reason, 'pan_format' | 'pan_padded' | 'pan_luhn'> | undefined {
  if (pan.length < PAN_LENGTH.least || pan.length > PADDED_LENGTH_MAX) return 'pan_format'
  const sum = luhnSum(pan)
  if (Number.isNaN(sum)) return 'pan_format'
  // No network issues numbers that begin with 0 (ISO/IEC 7812-1): a column of fixed width has filled this one up.
  if (pan.charCodeAt(0) === ZERO) return 'pan_padded'
  if (pan.length > PAN_LENGTH.most) return 'pan_format'
  return sum % 10 === 0 || isWithoutLuhn(pan) ? undefined : 'pan_luhn'
}

export function passesLuhn(digits: string): boolean {
  return luhnSum(digits) % 10 === 0
}

/** The Luhn sum; NaN if the text holds anything but digits. */
function luhnSum(digits: string): number {
  const { length } = digits
  let sum = 0
  for (let index = 0; index < length; index++) {
    const digit = digits.charCodeAt(index) - ZERO
    if (digit < 0 || digit > 9) return Number.NaN
    // Every second digit counts double, starting next to the last one.
    if (((length - index) & 1) === 1) sum += digit
    else sum += digit < 5 ? digit * 2 : digit * 2 - 9
  }
  return sum
}

/** UnionPay issues numbers without a valid check digit. */
function isWithoutLuhn(pan: string): boolean {
  return pan.startsWith('62') || pan.startsWith('81')
}

/** The number without zeros in front of it; at least 12 digits stay. */
export function withoutPadding(digits: string): string {
  if (digits.charCodeAt(0) !== ZERO) return digits
  let from = 0
  while (digits.charCodeAt(from) === ZERO && digits.length - from > PAN_LENGTH.least) from += 1
  return digits.slice(from)
}

/** The number as it is given, and without its zeros: in a text it counts as either. */
export function formsOf(digits: string): readonly string[] {
  const bare = withoutPadding(digits)
  return bare.length === digits.length ? [digits] : [digits, bare]
}

/** Whether the text holds this card number, with any characters between its digits. */
export function holdsPan(text: string, pan: string): boolean {
  const bare = withoutPadding(pan)
  return text.length >= bare.length && digitsOf(text).includes(bare)
}

/** The digits of a card number that may be shown: the first six or eight, and the last four. */
interface PanEnds {
  /** Six digits or eight. */
  bin: string
  lastFour: string
  /** Length of the whole number; undefined means 12 to 19. */
  length?: number
}

/**
 * Whether the text holds this card's number, or one that differs from it only in the hidden digits. If only the exact
 * number counted, a sender could find the hidden digits by trial.
 */
export function holdsPanLookalike(text: string, { bin, lastFour, length }: PanEnds): boolean {
  const digits = digitsOf(text)
  if (digits.length < (length ?? PAN_LENGTH.least)) return false
  const [least, most] = length === undefined ? [PAN_LENGTH.least, PAN_LENGTH.most] : [length, length]
  // Not by an expression: what a sender gives as the ends of a number may be no digits.
  for (let at = digits.indexOf(bin); at >= 0; at = digits.indexOf(bin, at + 1)) {
    for (let whole = least; whole <= most; whole += 1) {
      const end = at + Math.max(bin.length, whole - lastFour.length)
      if (digits.startsWith(lastFour, end)) return true
    }
    if (at === digits.length) break
  }
  return false
}

/** The first six and the last four of a number, and its length. */
export function endsOf(number: string): PanEnds {
  return { bin: number.slice(0, 6), lastFour: number.slice(-4), length: number.length }
}

const NUMBER = /(?<![0-9A-Za-z])(?:0[ -]?){0,21}\d(?:[ -]?\d){11,18}(?![0-9A-Za-z])/g

/** The runs of 12 to 19 digits, grouped or not and with zeros in front or not, that could be meant as a card number, even a mistyped one. */
export function numbersIn(text: string): string[] {
  return text.match(NUMBER)?.map(number => number.replace(/\D/g, '')) ?? []
}

/** Whether the text has at least so many digits, full-width and other compatibility digits among them. */
export function hasDigits(text: string, least: number): boolean {
  return text.length * DIGITS_PER_UNIT_MAX >= least && countDigits(text, least) >= least
}
/** U+2152 becomes 1⁄10. */
const DIGITS_PER_UNIT_MAX = 3

const FOREIGN = /[^\0-\x7f]/

/** The text with full-width digits and other compatibility characters replaced by their plain forms. */
export function plainOf(text: string): string {
  return FOREIGN.test(text) ? text.normalize('NFKC') : text
}

export function digitsOf(text: string): string {
  return plainOf(text).replace(/\D+/g, '')
}
