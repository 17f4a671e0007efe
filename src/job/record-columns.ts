// The records of a chunk in columns: the form of a block whose first line holds all records that are nothing but a card in
// clear, as arrays, and whose other lines are the other records, as in a block of rows. The protected header of the block
// says which form it has; a worker that doesn't know the form, or one of the columns, refuses the chunk. The text is
// canonical: the same records have one text, because a receipt recognises a repeated chunk by it. Workers check the
// records; nothing is refused here but a text of another form.
import { isUtf8 } from 'node:buffer'
import { z } from 'zod'

/** The form of a block: rows, of which each line is a record, or columns. */
export type BlockForm = 'rows' | 'columns'

/**
 * The first line of a block in columns. Values of the same place in the first six members belong to the same record.
 */
export const RecordColumns = z.strictObject({
  /** The line numbers of the records in the source. */
  line: z.array(z.int().min(1)),
  /** '' for none. */
  reference: z.array(z.string()),
  cardNumber: z.array(z.string()),
  expiryMonth: z.array(z.int()),
  expiryYear: z.array(z.int()),
  /** '' for none. */
  cardholderName: z.array(z.string()),
  /** The places in the chunk, from 0, of the records on the following lines, in ascending order. */
  others: z.array(z.int().min(0)),
})
export type RecordColumns = z.infer<typeof RecordColumns>

/** A record that can stand in columns. */
export interface ColumnRecord {
  line: number
  /** '' for none. */
  reference: string
  cardNumber: string
  expiryMonth: number
  expiryYear: number
  /** '' for none. */
  cardholderName: string
}

/**
 * The lines of a block in columns. A text among the records is a record as its line of JSON. If only one record could
 * be in columns, it is a line like the others: so there are never as many lines as records.
 */
export function columnLines(given: readonly (ColumnRecord | string)[]): string[] {
  const isOne = given.filter(record => typeof record !== 'string').length === 1
  const records = isOne ? given.map(record => (typeof record === 'string' ? record : rowOf(record))) : given
  const columns: RecordColumns = {
    line: [],
    reference: [],
    cardNumber: [],
    expiryMonth: [],
    expiryYear: [],
    cardholderName: [],
    others: [],
  }
  const lines = ['']
  for (const [place, record] of records.entries()) {
    if (typeof record === 'string') {
      columns.others.push(place)
      lines.push(record)
      continue
    }
    columns.line.push(record.line)
    columns.reference.push(record.reference)
    columns.cardNumber.push(record.cardNumber)
    columns.expiryMonth.push(record.expiryMonth)
    columns.expiryYear.push(record.expiryYear)
    columns.cardholderName.push(record.cardholderName)
  }
  lines[0] = JSON.stringify(columns)
  return lines
}

/** A block in columns. The values of the columns aren't checked. */
export interface ReadColumns {
  columns: { [name in Exclude<keyof RecordColumns, 'others'>]: readonly unknown[] } & { others: readonly number[] }
  others: Buffer[]
}

const NEWLINE = 0x0a
const NAMES = Object.keys(RecordColumns.shape) as (keyof RecordColumns)[]

/**
 * Undefined for a text of another form, or with another number of records than `records`. At most `records` + 1 lines
 * are read.
 */
export function readColumns(plaintext: Buffer, records: number): ReadColumns | undefined {
  const lines = linesOf(plaintext, records + 1)
  const [first, ...others] = lines ?? []
  const columns = first && parsed(first)
  if (!columns || !hasNames(Object.keys(columns))) return undefined
  const { others: places, ...values } = columns as { [name in keyof RecordColumns]: unknown }
  const length = records - others.length
  // A single record may not be in columns: it is sent as one of the others.
  if (length === 1 || !Object.values(values).every(column => isColumn(column, length))) return undefined
  if (!Array.isArray(places) || places.length !== others.length) return undefined
  const grow = places.every((place, index) => Number.isInteger(place) && place > (index === 0 ? -1 : places[index - 1]))
  if (!grow || (places.at(-1) ?? -1) >= records) return undefined
  return { columns: columns as ReadColumns['columns'], others }
}

function hasNames(names: readonly string[]): boolean {
  return names.length === NAMES.length && names.every((name, index) => name === NAMES[index])
}

function isColumn(column: unknown, length: number): boolean {
  return Array.isArray(column) && column.length === length && column.every(value => typeof value !== 'object')
}

/** The lines that aren't empty; undefined if there are more than `most`. */
function linesOf(text: Buffer, most: number): Buffer[] | undefined {
  const lines: Buffer[] = []
  for (let start = 0; start < text.length; ) {
    let end = text.indexOf(NEWLINE, start)
    if (end === -1) end = text.length
    if (end > start && lines.length === most) return undefined
    if (end > start) lines.push(text.subarray(start, end))
    start = end + 1
  }
  return lines
}

function parsed(line: Buffer): object | undefined {
  if (!isUtf8(line)) return undefined
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The block as rows, each record as its line of JSON; undefined for what `readColumns` doesn't read. */
export function spreadColumns(plaintext: Buffer, records: number): Buffer | undefined {
  const read = readColumns(plaintext, records)
  if (!read) return undefined
  const { columns, others } = read
  const lines: Buffer[] = []
  for (const item of inOrder(read)) {
    const line = 'other' in item ? others[item.other] : Buffer.from(rowAt(columns, item.at))
    if (line) lines.push(line, NEWLINE_BYTES)
  }
  return Buffer.concat(lines)
}

/** The records of a chunk in their order: places in its columns, and of its other lines. */
export function* inOrder({
  columns,
}: {
  columns: { line: { length: number }; others: readonly number[] }
}): Generator<{ at: number } | { other: number }> {
  let at = 0
  for (const [other, place] of columns.others.entries()) {
    for (; at + other < place; at += 1) yield { at }
    yield { other }
  }
  for (; at < columns.line.length; at += 1) yield { at }
}

const NEWLINE_BYTES = Buffer.from('\n')

/** The record at a place of the columns as its line of JSON, whatever its values are. */
export function rowAt(columns: ReadColumns['columns'], at: number): string {
  const { line, reference, cardNumber, expiryMonth, expiryYear, cardholderName } = columns
  const card = { cardNumber: cardNumber[at], expiryMonth: expiryMonth[at], expiryYear: expiryYear[at] }
  const name = cardholderName[at]
  return JSON.stringify({
    line: line[at],
    ...(reference[at] === '' ? {} : { reference: reference[at] }),
    request: { card: name === '' ? card : { ...card, cardholderName: name } },
  })
}

/** The record as its line of JSON: what a block of rows has for it. */
export function rowOf(record: ColumnRecord): string {
  const { line, reference, cardNumber, expiryMonth, expiryYear, cardholderName } = record
  const named = reference === '' ? '' : `,"reference":${JSON.stringify(reference)}`
  const holder = cardholderName === '' ? '' : `,"cardholderName":${JSON.stringify(cardholderName)}`
  return `{"line":${line}${named},"request":{"card":{"cardNumber":${JSON.stringify(cardNumber)},"expiryMonth":${expiryMonth},"expiryYear":${expiryYear}${holder}}}}`
}

const EMPTY = rowOf({ line: 0, reference: '', cardNumber: '', expiryMonth: 0, expiryYear: 0, cardholderName: '' })
const DIGITS_BEFORE = 3
const REFERENCE_UNITS = ',"reference":""'.length
const HOLDER_UNITS = ',"cardholderName":""'.length

/** The length of `rowOf`, in UTF-16 units, if the texts hold nothing that JSON escapes. */
export function rowUnits(record: ColumnRecord): number {
  const { line, reference, cardNumber, expiryMonth, expiryYear, cardholderName } = record
  const digits = digitsOf(line) + digitsOf(expiryMonth) + digitsOf(expiryYear) - DIGITS_BEFORE
  const named = reference === '' ? 0 : REFERENCE_UNITS + reference.length
  const holder = cardholderName === '' ? 0 : HOLDER_UNITS + cardholderName.length
  return EMPTY.length + digits + cardNumber.length + named + holder
}

/** How many digits a whole number from 0 on has. */
function digitsOf(number: number): number {
  let digits = 1
  for (let bound = 10; number >= bound; bound *= 10) digits += 1
  return digits
}
