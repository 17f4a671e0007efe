// PostgreSQL's binary form of array parameters, for sets of rows whose values stand in columns. The driver sends a
// `Buffer` as it is, so that nothing is turned into text and back. columns.ts has the text form, for rows as objects.
import { assert, Fault } from '../errors.ts'

/** The types of elements, by their numbers in every PostgreSQL. An array's elements must have exactly the stated type. */
const TYPES = {
  bytea: 17,
  bigint: 20,
  smallint: 21,
  integer: 23,
  text: 25,
  date: 1082,
  timestamptz: 1184,
  uuid: 2950,
} as const
/** Dimensions, whether a null may follow, type of the elements, length, lower bound. */
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const UTF8_BYTES_MAX = 3
const NULL = -1

export const UUID_BYTES = 16

function arrayOf(type: number, count: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(HEADER_BYTES + count * LENGTH_BYTES + bytes)
  array.writeInt32BE(1, 0)
  array.writeInt32BE(1, 4)
  array.writeInt32BE(type, 8)
  array.writeInt32BE(count, 12)
  array.writeInt32BE(1, 16)
  return array
}

/** `bytes`: those of the UUIDs, one after the other. */
export function uuids(bytes: Buffer): Buffer {
  const count = bytes.length / UUID_BYTES
  const array = arrayOf(TYPES.uuid, count, bytes.length)
  for (let index = 0, at = HEADER_BYTES; index < count; index += 1) {
    at = array.writeInt32BE(UUID_BYTES, at)
    at += bytes.copy(array, at, index * UUID_BYTES, (index + 1) * UUID_BYTES)
  }
  return array
}

/** The bytes of UUIDs in lower or upper case, one after the other. */
export function uuidBytes(texts: readonly string[]): Buffer {
  return Buffer.from(texts.join('').replaceAll('-', ''), 'hex')
}

const UUID_CHARS = 36
const DIGITS = Buffer.from('0123456789abcdef')
const DASH = 0x2d

/** The texts of UUIDs. They are parts of one text, so whoever keeps one of them keeps the memory of all. */
export function uuidTexts(bytes: Buffer): string[] {
  const text = Buffer.allocUnsafe((bytes.length / UUID_BYTES) * UUID_CHARS)
  let end = 0
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0
    const place = at % UUID_BYTES
    if (place >= 4 && place <= 10 && place % 2 === 0) text[end++] = DASH
    text[end++] = DIGITS[byte >> 4] ?? 0
    text[end++] = DIGITS[byte & 0xf] ?? 0
  }
  const all = text.toString('latin1')
  const found: string[] = []
  for (let at = 0; at < all.length; at += UUID_CHARS) found.push(all.slice(at, at + UUID_CHARS))
  return found
}

/** `bytes`: the values one after the other; `ends`: where each of them ends. */
export function byteas(bytes: Buffer, ends: readonly number[]): Buffer {
  const array = arrayOf(TYPES.bytea, ends.length, ends.at(-1) ?? 0)
  let start = 0
  let at = HEADER_BYTES
  for (const end of ends) {
    at = array.writeInt32BE(end - start, at)
    at += bytes.copy(array, at, start, end)
    start = end
  }
  return array
}

export function smallints(values: readonly (number | null)[]): Buffer {
  return numbersOf(TYPES.smallint, 2, values)
}

export function integers(values: readonly (number | null)[]): Buffer {
  return numbersOf(TYPES.integer, 4, values)
}

function numbersOf(type: number, bytes: 2 | 4, values: readonly (number | null)[]): Buffer {
  const array = arrayOf(type, values.length, values.length * bytes)
  const view = viewOf(array)
  let at = HEADER_BYTES
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? null
    view.setInt32(at, value === null ? NULL : bytes)
    at += LENGTH_BYTES
    if (value === null) continue
    if (bytes === 2) view.setInt16(at, inBounds(value, 2 ** 15))
    else view.setInt32(at, inBounds(value, 2 ** 31))
    at += bytes
  }
  return array.subarray(0, at)
}

/** The whole number, if it is at least -`bound` and below `bound`: a view would write others in part. */
function inBounds(value: number, bound: number): number {
  if (value < -bound || value >= bound || !Number.isInteger(value))
    throw new RangeError('a number that its type can not hold')
  return value
}

/** A `DataView` writes numbers several times faster than a `Buffer`. */
const viewOf = (array: Buffer) => new DataView(array.buffer, array.byteOffset, array.length)
const HALF = 2 ** 32
const LONG_BYTES = 8
const DATE_BYTES = 4

/** Whole numbers of 64 bits as decimal texts. */
export function bigints(values: readonly (string | null)[]): Buffer {
  const array = arrayOf(TYPES.bigint, values.length, values.length * LONG_BYTES)
  const view = viewOf(array)
  let at = HEADER_BYTES
  for (const value of values) {
    if (value === null) view.setInt32(at, NULL)
    else if (value.length <= EXACT_DIGITS) putLong(view, at, Number(value))
    else {
      view.setInt32(at, LONG_BYTES)
      view.setBigInt64(at + LENGTH_BYTES, BigInt(value))
    }
    at += value === null ? LENGTH_BYTES : LENGTH_BYTES + LONG_BYTES
  }
  return array.subarray(0, at)
}
/** A double holds every whole number with this many digits exactly. */
const EXACT_DIGITS = 15

function putLong(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value), 'a time or amount is a whole number')
  const high = Math.floor(value / HALF)
  view.setInt32(at, LONG_BYTES)
  view.setInt32(at + LENGTH_BYTES, high)
  view.setUint32(at + LENGTH_BYTES + LONG_BYTES / 2, value - high * HALF)
}

/** Calendar dates, `2026-03-31`. */
export function dates(values: readonly (string | null)[]): Buffer {
  const array = arrayOf(TYPES.date, values.length, values.length * DATE_BYTES)
  const view = viewOf(array)
  let at = HEADER_BYTES
  for (const value of values) {
    view.setInt32(at, value === null ? NULL : DATE_BYTES)
    at += LENGTH_BYTES
    if (value === null) continue
    view.setInt32(at, daysOf(value))
    at += DATE_BYTES
  }
  return array.subarray(0, at)
}

/** Times in UTC: RFC 3339 with `T` and `Z`, up to microseconds, years from 1900 to 2200 (a double holds these exactly). */
export function timestamps(values: readonly (string | null)[]): Buffer {
  const array = arrayOf(TYPES.timestamptz, values.length, values.length * LONG_BYTES)
  const view = viewOf(array)
  let at = HEADER_BYTES
  for (const value of values) {
    if (value === null) view.setInt32(at, NULL)
    else putLong(view, at, microsecondsOf(value))
    at += value === null ? LENGTH_BYTES : LENGTH_BYTES + LONG_BYTES
  }
  return array.subarray(0, at)
}

const FRACTION = { at: 20, digits: 6 }
/** Microseconds since 2000, from which PostgreSQL counts. */
function microsecondsOf(text: string): number {
  const minutes = (daysOf(text) * 24 + twoAt(text, 11)) * 60 + twoAt(text, 14)
  const whole = (minutes * 60 + twoAt(text, 17)) * 1_000_000
  const digits = text.length - 1 - FRACTION.at
  return digits > 0 ? whole + digitsAt(text, FRACTION.at, text.length - 1) * 10 ** (FRACTION.digits - digits) : whole
}

/** From 1 March of the year 0 to 1 January 2000. */
const DAYS_BEFORE = 730_425

/** Days since 2000. The year is counted from March, so that a leap day is its last. */
function daysOf(text: string): number {
  const month = twoAt(text, 5)
  const year = twoAt(text, 0) * 100 + twoAt(text, 2) - (month > 2 ? 0 : 1)
  const leapDays = Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400)
  const ofYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + twoAt(text, 8) - 1
  return year * 365 + leapDays + ofYear - DAYS_BEFORE
}

const DIGIT_ZERO = 0x30

function twoAt(text: string, at: number): number {
  return (text.charCodeAt(at) - DIGIT_ZERO) * 10 + text.charCodeAt(at + 1) - DIGIT_ZERO
}

function digitsAt(text: string, from: number, to: number): number {
  let number = 0
  for (let at = from; at < to; at += 1) number = number * 10 + text.charCodeAt(at) - DIGIT_ZERO
  return number
}

/** Throws `Fault('data')` for a text that PostgreSQL can't hold: with a NUL, or with half of a surrogate pair. */
export function texts(values: readonly (string | null)[]): Buffer {
  let characters = 0
  for (const value of values) if (value !== null) characters += value.length
  const array = arrayOf(TYPES.text, values.length, characters * UTF8_BYTES_MAX)
  let at = HEADER_BYTES
  for (const value of values) {
    const start = at + LENGTH_BYTES
    const end = value === null ? start : writeText(array, start, value)
    array.writeInt32BE(value === null ? NULL : end - start, at)
    at = end
  }
  return array.subarray(0, at)
}

const PRINTABLE = { first: 0x20, last: 0x7e }

/** Returns the end. A loop is faster than a call of the driver's for the short texts that are usual. */
function writeText(into: Buffer, start: number, text: string): number {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code < PRINTABLE.first || code > PRINTABLE.last) return writeAny(into, start, text)
    into[start + index] = code
  }
  return start + text.length
}

function writeAny(into: Buffer, start: number, text: string): number {
  // The server would refuse a NUL with all rows of the statement; `write` would put another character for a lone surrogate.
  if (!text.isWellFormed() || text.includes('\0')) throw new Fault('data', new Error('a text that can not be stored'))
  return start + into.write(text, start, 'utf8')
}

/** The indexes of values of 16 bytes, in the order of the values. */
export function orderOf(bytes: Buffer): number[] {
  const heads: number[] = []
  for (let at = 0; at < bytes.length; at += UUID_BYTES) heads.push(bytes.readUInt32BE(at))
  const order = placesByValue(heads)
  // Values whose first four bytes are the same are few: those of a card that occurs more than once.
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && heads[order[to] ?? 0] === heads[order[from] ?? 0]) to += 1
    if (to > from + 1) order.splice(from, to - from, ...order.slice(from, to).sort((a, b) => compareAt(bytes, a, b)))
    from = to
  }
  return order
}

const PLACES = 2 ** 20

/**
 * The places of whole numbers from 0 to 2^32, in the order of the numbers; those of the same number in their own order.
 * A typed array sorts numbers in a fraction of the time that an array takes with a function that compares two places.
 */
export function placesByValue(values: readonly number[]): number[] {
  assert(values.length <= PLACES, 'a chunk has at most 1,000 records')
  const keys = new Float64Array(values.length)
  for (let place = 0; place < values.length; place += 1) keys[place] = (values[place] ?? 0) * PLACES + place
  keys.sort()
  const places: number[] = []
  for (let index = 0; index < keys.length; index += 1) places.push((keys[index] ?? 0) % PLACES)
  return places
}

/** Below, at or above zero: compares two of the values of 16 bytes. Most differ in their first bytes. */
export function compareAt(bytes: Buffer, a: number, b: number): number {
  for (let index = 0; index < UUID_BYTES; index += 1) {
    const difference = (bytes[a * UUID_BYTES + index] ?? 0) - (bytes[b * UUID_BYTES + index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** The values of 16 bytes at these indexes, one after the other. */
export function pick(bytes: Buffer, indexes: readonly number[]): Buffer {
  const picked = Buffer.allocUnsafe(indexes.length * UUID_BYTES)
  let end = 0
  for (const index of indexes) end += bytes.copy(picked, end, index * UUID_BYTES, (index + 1) * UUID_BYTES)
  return picked
}

/** The indexes of the sought values of 16 bytes; values that aren't there are left out. `order`: that of `bytes`. */
export function indexesOf(sought: Buffer, bytes: Buffer, order: readonly number[]): number[] {
  const indexes: number[] = []
  for (let at = 0; at < sought.length; at += UUID_BYTES) {
    const compareTo = (index: number) =>
      sought.compare(bytes, index * UUID_BYTES, (index + 1) * UUID_BYTES, at, at + UUID_BYTES)
    let low = 0
    let high = order.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareTo(order[middle] ?? 0) > 0) low = middle + 1
      else high = middle
    }
    const found = order[low]
    if (found !== undefined && compareTo(found) === 0) indexes.push(found)
  }
  return indexes
}
