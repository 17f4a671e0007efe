// PostgreSQL's binary form of array parameters, for sets of rows whose values stand in columns. The driver sends a
// `Buffer` as it is, so that nothing is turned into text and back. columns.ts has the text form, for rows as objects.
import { Fault } from '../errors.ts'

/** The types of elements, by their numbers in every PostgreSQL. An array's elements must have exactly the stated type. */
const TYPES = { bytea: 17, smallint: 21, integer: 23, text: 25, uuid: 2950 } as const
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

/** The texts of UUIDs. */
export function uuidTexts(bytes: Buffer): string[] {
  const hex = bytes.toString('hex')
  return Array.from({ length: bytes.length / UUID_BYTES }, (_, index) => {
    const at = index * UUID_BYTES * 2
    return `${hex.slice(at, at + 8)}-${hex.slice(at + 8, at + 12)}-${hex.slice(at + 12, at + 16)}-${hex.slice(at + 16, at + 20)}-${hex.slice(at + 20, at + 32)}`
  })
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

function numbersOf(type: number, bytes: number, values: readonly (number | null)[]): Buffer {
  const array = arrayOf(type, values.length, values.length * bytes)
  let at = HEADER_BYTES
  for (const value of values) {
    at = array.writeInt32BE(value === null ? NULL : bytes, at)
    if (value !== null) at = array.writeIntBE(value, at, bytes)
  }
  return array.subarray(0, at)
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
  const heads = Array.from({ length: bytes.length / UUID_BYTES }, (_, index) => bytes.readUInt32BE(index * UUID_BYTES))
  return heads.map((_, index) => index).sort((a, b) => (heads[a] ?? 0) - (heads[b] ?? 0) || compareAt(bytes, a, b))
}

/** Below, at or above zero, as `Buffer.compare`: compares two of the values of 16 bytes. */
export function compareAt(bytes: Buffer, a: number, b: number): number {
  return bytes.compare(bytes, b * UUID_BYTES, (b + 1) * UUID_BYTES, a * UUID_BYTES, (a + 1) * UUID_BYTES)
}

/** The values of 16 bytes at these indexes, one after the other. */
export function pick(bytes: Buffer, indexes: readonly number[]): Buffer {
  const picked = Buffer.allocUnsafe(indexes.length * UUID_BYTES)
  for (const [place, index] of indexes.entries())
    bytes.copy(picked, place * UUID_BYTES, index * UUID_BYTES, (index + 1) * UUID_BYTES)
  return picked
}
