// Reads the plain lines of a CSV file by their bytes, without an object for a line and mostly without a text for a cell:
// printable ASCII without backslashes, as many cells as the header, times in UTC, and amounts of at most fifteen
// digits. Every other line goes to record.ts, which would make the same of a plain line, only slower; a test compares
// the two.
import { TEXT_FIELDS, type TextField, UID_DIGITS } from '../../src/job/ledger/columns.ts'
import { type Gathering, LACKS } from '../../src/job/ledger/gather.ts'
import { TRANSACTION_FIELDS, type TransactionField } from '../../src/job/ledger/transaction.ts'
import { minorUnit } from '../../src/token/currency.ts'
import { BYTES } from '../transaction-batch.ts'
import type { AmountName, Layout, PlainName } from './columns.ts'
import type { RowTaker } from './record.ts'

/** Reads whole lines (`CsvSink.lines`). Returns how many there were. */
export type PlainReader = (
  bytes: Buffer,
  line: number,
  split: (line: number, fields: readonly string[]) => void,
) => number

const LF = 10
const CR = 13
const STAR = 0x2a
const MINUS = 0x2d
const T = 0x54
const Z = 0x5a

const ORDINARY = 0
const COMMA = 1
const OTHER = 2
const MEANING = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x2c) return COMMA
  return byte >= 0x20 && byte <= 0x7e && byte !== 0x22 && byte !== 0x5c ? ORDINARY : OTHER
})
/** 1 for the hexadecimal digits of a UUID in lower case. */
const IS_HEX = Uint8Array.from({ length: 256 }, (_, byte) => (/[0-9a-f]/.test(String.fromCharCode(byte)) ? 1 : 0))
const UID_CHARS = 36

const CELL_MAX = 255
const NOT_PLAIN = -1

/** A column whose cells become values as they are. */
interface TextCells {
  at: number
  field: number
  memberBytes: number
  isTime: boolean
  isMasked: boolean
  /** The cell of an earlier line in the same bytes, and its text: values that repeat are one text. */
  start: number
  length: number
  text: string
}

interface AmountCells {
  at: number
  field: number
  memberBytes: number
  isMinor: boolean
  /** Of LACKS, if the cell is empty; 0 for the amount itself. */
  lack: number
  /** Of this line, in minor units, if its cell isn't empty and gives major units. */
  value: number
}

/** `width`: the number of cells in the header. */
export function openPlain(layout: Layout, width: number, taker: RowTaker): PlainReader {
  const line = openLine(layout, width)
  return (bytes, first, split) => {
    const take = (number: number, start: number, end: number) => {
      const least = line.read(start, end)
      if (least === NOT_PLAIN) split(number, bytes.toString('utf8', start, end).split(','))
      else line.addTo(taker.room(least), number)
    }
    let number = first
    line.begin(bytes)
    for (let start = 0; start < bytes.length; number += 1) {
      const found = bytes.indexOf(LF, start)
      const next = found < 0 ? bytes.length : found
      const end = next > start && bytes[next - 1] === CR ? next - 1 : next
      if (end > start) take(number, start, end)
      start = next + 1
    }
    return number - first
  }
}

interface PlainLine {
  begin(bytes: Buffer): void
  /** Reads a line. Returns an upper bound of its bytes as JSON, or NOT_PLAIN. */
  read(start: number, end: number): number
  /** Adds the line that was read last. */
  addTo(into: Gathering | undefined, number: number): void
}

function openLine(layout: Layout, width: number): PlainLine {
  const cells = layout.plain.filter(({ name }) => name !== 'transaction_uid').map(textCells)
  const amounts = layout.amounts.map(amountCells)
  const order = orderOf(layout)
  const absent = absentFields(layout)
  const lacksAlways = absent.reduce((sum, { lack }) => sum + lack, 0)
  const bytesAlways =
    BYTES.line + memberBytesOf('transaction_uid') + UID_CHARS + absent.reduce((sum, { least }) => sum + least, 0)
  /** Where each cell of the line begins; the next begins one byte behind its end. */
  const starts = new Int32Array(width + 1)
  let bytes: Buffer = Buffer.alloc(0)
  let text: string | undefined
  let lacks = 0

  const split = (start: number, end: number): boolean => {
    let count = 1
    starts[0] = start
    for (let at = start; at < end; at += 1) {
      const meaning = MEANING[bytes[at] as number]
      if (meaning === ORDINARY) continue
      if (meaning === OTHER || count === width) return false
      starts[count] = at + 1
      count += 1
    }
    starts[count] = end + 1
    return count === width
  }
  const lengthOf = (at: number) => (starts[at + 1] as number) - (starts[at] as number) - 1

  const readCells = (): number => {
    let least = 0
    for (let index = 0; index < cells.length; index += 1) {
      const { at, memberBytes, isTime, isMasked } = cells[index] as TextCells
      const length = lengthOf(at)
      if (length === 0) continue
      if (length > CELL_MAX || (isTime && !isUtc(bytes, starts[at] as number, length))) return NOT_PLAIN
      if (isMasked && !hasMask(bytes, starts[at] as number, length)) return NOT_PLAIN
      least += memberBytes + length
    }
    return least
  }
  const readAmounts = (): number => {
    let least = 0
    lacks = lacksAlways
    for (let index = 0; index < amounts.length; index += 1) {
      const cell = amounts[index] as AmountCells
      const units = unitsOf(cell)
      if (units === NOT_PLAIN) return NOT_PLAIN
      if (units > 0) least += cell.memberBytes + units
    }
    return least
  }
  /** Reads an amount. Returns the characters of its value, 0 for none, or NOT_PLAIN. */
  const unitsOf = (cell: AmountCells): number => {
    const start = starts[cell.at] as number
    const length = lengthOf(cell.at)
    if (length === 0) {
      lacks += cell.lack
      return cell.lack > 0 ? 1 : 0
    }
    cell.value = amountAt(cell.isMinor, start, start + length)
    if (Number.isNaN(cell.value)) return NOT_PLAIN
    return cell.isMinor ? length : digitsOf(cell.value)
  }
  const amountAt = (isMinor: boolean, start: number, end: number) => {
    if (isMinor) return isMinorAmount(bytes, start, end) ? 0 : Number.NaN
    const at = layout.currencyAt
    const exponent = lengthOf(at) === 3 ? exponentAt(bytes, starts[at] as number) : undefined
    return exponent === undefined ? Number.NaN : minorAt(bytes, start, end, exponent)
  }

  const textAt = (start: number, end: number): string => {
    const all = text ?? bytes.toString('latin1')
    text = all
    return all.slice(start, end)
  }
  const addCell = (cell: TextCells, into: readonly string[][]) => {
    const start = starts[cell.at] as number
    const length = lengthOf(cell.at)
    if (length !== cell.length || !areSame(bytes, start, cell.start, length)) cell.text = textAt(start, start + length)
    cell.start = start
    cell.length = length
    ;(into[cell.field] as string[]).push(cell.text)
  }
  const addAmount = ({ at, field, isMinor, lack, value }: AmountCells, into: readonly string[][]) => {
    const start = starts[at] as number
    const length = lengthOf(at)
    const empty = lack > 0 ? '0' : ''
    const given = isMinor ? textAt(start, start + length) : String(value)
    ;(into[field] as string[]).push(length === 0 ? empty : given)
  }

  return {
    begin(given) {
      bytes = given
      text = undefined
      for (const cell of cells) cell.length = NOT_PLAIN
    },
    read(start, end) {
      if (!split(start, end) || !isUid(bytes, starts[layout.uidAt] as number, lengthOf(layout.uidAt))) return NOT_PLAIN
      const ofCells = readCells()
      const ofAmounts = ofCells === NOT_PLAIN ? NOT_PLAIN : readAmounts()
      return ofAmounts === NOT_PLAIN ? NOT_PLAIN : bytesAlways + ofCells + ofAmounts
    },
    addTo(into, number) {
      if (!into) return
      const { line, uids, texts } = into
      into.order = order
      copyUid(bytes, starts[layout.uidAt] as number, uids, line.length * UID_DIGITS)
      for (const cell of cells) addCell(cell, texts)
      for (const cell of amounts) addAmount(cell, texts)
      for (const { field, value } of absent) (texts[field] as string[]).push(value)
      line.push(number)
      into.lacks.push(lacks)
    },
  }
}

const memberBytesOf = (name: TransactionField) => name.length + BYTES.member
const fieldOf = (name: TransactionField) => TEXT_FIELDS.indexOf(name as TextField)
const lackOf = (name: TransactionField) => (Object.hasOwn(LACKS, name) ? LACKS[name as keyof typeof LACKS] : 0)

function textCells({ name, at }: { name: PlainName; at: number }): TextCells {
  const isTime = name === 'created_at' || name === 'settled_at'
  const cell = { at, field: fieldOf(name), memberBytes: memberBytesOf(name), isTime, isMasked: name === 'masked_card' }
  return { ...cell, start: 0, length: NOT_PLAIN, text: '' }
}

function amountCells({ name, minor, at }: { name: AmountName; minor: boolean; at: number }): AmountCells {
  return { at, field: fieldOf(name), memberBytes: memberBytesOf(name), isMinor: minor, lack: lackOf(name), value: 0 }
}

/** The fields for which the file has no column, with the value of each. */
function absentFields({ plain, amounts }: Layout) {
  const names = new Set<TransactionField>([...plain, ...amounts].map(({ name }) => name))
  return TEXT_FIELDS.filter(name => !names.has(name)).map(name => {
    const lack = lackOf(name)
    return { field: fieldOf(name), value: lack > 0 ? '0' : '', lack, least: lack > 0 ? memberBytesOf(name) + 1 : 0 }
  })
}

/** The members of a line as `rowOf` puts them. */
function orderOf({ plain, amounts }: Layout): TransactionField[] {
  const given = [...plain, ...amounts].map(({ name }) => name)
  return [...given, ...TRANSACTION_FIELDS.filter(name => !(given as TransactionField[]).includes(name))]
}

/** Whether `momentOf` leaves the text as it is because it ends with `Z`. */
function isUtc(bytes: Buffer, start: number, length: number): boolean {
  return length >= 20 && bytes[start + 10] === T && bytes[start + length - 1] === Z
}

/** Whether the text is up to eight digits, asterisks, and up to four digits: too few for a whole card number. */
function hasMask(bytes: Buffer, start: number, length: number): boolean {
  const end = start + length
  let at = start
  while (at < end && isDigit(bytes[at] as number)) at += 1
  const first = at - start
  while (at < end && bytes[at] === STAR) at += 1
  const masked = at - start - first
  const last = end - at
  while (at < end && isDigit(bytes[at] as number)) at += 1
  return at === end && masked > 0 && first <= 8 && last <= 4
}

function isUid(bytes: Buffer, start: number, length: number): boolean {
  if (length !== UID_CHARS) return false
  for (let at = 0; at < UID_CHARS; at += 1) {
    const byte = bytes[start + at] as number
    if (isDash(at) ? byte !== MINUS : IS_HEX[byte] === 0) return false
  }
  return true
}

const isDash = (at: number) => at === 8 || at === 13 || at === 18 || at === 23

function copyUid(from: Buffer, start: number, to: Buffer, into: number): void {
  let end = into
  for (let at = 0; at < UID_CHARS; at += 1) {
    if (isDash(at)) continue
    to[end] = from[start + at] as number
    end += 1
  }
}

function areSame(bytes: Buffer, one: number, other: number, length: number): boolean {
  // Values that differ mostly differ at their end: numbers, times.
  for (let at = length - 1; at >= 0; at -= 1) if (bytes[one + at] !== bytes[other + at]) return false
  return true
}

const DOT = 0x2e
const ZERO = 0x30
/** So many digits a double holds exactly. */
const DIGITS_MAX = 15

const EXPONENTS = new Map<number, number | undefined>()
/** Bounds the memory that codes of a wrong file take. */
const EXPONENTS_MAX = 1_000

/** The digits of the minor unit of the currency whose three letters stand here; undefined if there is none. */
function exponentAt(bytes: Buffer, start: number): number | undefined {
  const key = ((bytes[start] as number) << 16) | ((bytes[start + 1] as number) << 8) | (bytes[start + 2] as number)
  const known = EXPONENTS.get(key)
  if (known !== undefined) return known
  const exponent = minorUnit(bytes.toString('latin1', start, start + 3))
  if (exponent !== undefined && EXPONENTS.size < EXPONENTS_MAX) EXPONENTS.set(key, exponent)
  return exponent
}

const isDigit = (byte: number) => byte >= ZERO && byte < ZERO + 10

/** Whether `checkMinor` takes the amount; one of more than fifteen digits goes the other way, too. */
function isMinorAmount(bytes: Buffer, start: number, end: number): boolean {
  const from = bytes[start] === MINUS ? start + 1 : start
  if (end === from || end - from > DIGITS_MAX) return false
  for (let at = from; at < end; at += 1) if (!isDigit(bytes[at] as number)) return false
  return true
}

/**
 * The amount in minor units as `minorOf` reads it; NaN if it isn't one, or has too many digits for a double: such a line
 * goes to `minorOf`, which takes the amount or refuses it.
 */
function minorAt(bytes: Buffer, start: number, end: number, exponent: number): number {
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
function digitsOf(value: number): number {
  const positive = Math.abs(value)
  let digits = value < 0 ? 2 : 1
  for (let limit = 10; limit <= positive; limit *= 10) digits += 1
  return digits
}
