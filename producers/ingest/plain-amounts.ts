// Reads amounts by their bytes. What isn't read here (NaN, undefined, false) goes to `minorOf` and `checkMinor`, which
// take the amount or refuse it; what is read here is what they would read.
import { minorUnit } from '../../src/token/currency.ts'

const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
/** So many digits a double holds exactly. */
const DIGITS_MAX = 15

const EXPONENTS = new Map<number, number | undefined>()
/** Bounds the memory that codes of a wrong file take. */
const EXPONENTS_MAX = 1_000

/** The digits of the minor unit of the currency whose three letters stand here; undefined if there is none. */
export function exponentAt(bytes: Buffer, start: number): number | undefined {
  const key = ((bytes[start] as number) << 16) | ((bytes[start + 1] as number) << 8) | (bytes[start + 2] as number)
  const known = EXPONENTS.get(key)
  if (known !== undefined) return known
  const exponent = minorUnit(bytes.toString('latin1', start, start + 3))
  if (exponent !== undefined && EXPONENTS.size < EXPONENTS_MAX) EXPONENTS.set(key, exponent)
  return exponent
}

export const isDigit = (byte: number) => byte >= ZERO && byte < ZERO + 10

/** Whether `checkMinor` takes the amount; one of more than fifteen digits goes the other way, too. */
export function isMinorAmount(bytes: Buffer, start: number, end: number): boolean {
  const from = bytes[start] === MINUS ? start + 1 : start
  if (end === from || end - from > DIGITS_MAX) return false
  for (let at = from; at < end; at += 1) if (!isDigit(bytes[at] as number)) return false
  return true
}

/** The amount in minor units as `minorOf` reads it; NaN if it isn't one, or has too many digits for a double. */
export function minorAt(bytes: Buffer, start: number, end: number, exponent: number): number {
  const from = bytes[start] === MINUS ? start + 1 : start
  let value = 0
  let dot = end
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at] as number
    if (byte === DOT && dot === end) dot = at
    else if (isDigit(byte)) value = value * 10 + byte - ZERO
    else return Number.NaN
  }
  const decimals = dot === end ? 0 : end - dot - 1
  if (dot === from || dot === end - 1 || decimals > exponent || dot - from + exponent > DIGITS_MAX) return Number.NaN
  for (let more = decimals; more < exponent; more += 1) value *= 10
  return value !== 0 && from > start ? -value : value
}

/** The characters of a whole number. */
export function digitsOf(value: number): number {
  const positive = Math.abs(value)
  let digits = value < 0 ? 2 : 1
  for (let limit = 10; limit <= positive; limit *= 10) digits += 1
  return digits
}
