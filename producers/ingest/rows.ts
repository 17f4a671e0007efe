// Reads the bytes of a file of transactions as rows, CSV or NDJSON. The rows come in arrays, one for each part of the
// text.
import { isUtf8 } from 'node:buffer'
import type { Reason } from '../../src/errors.ts'
import { readObject } from '../../src/job/envelope/strict-json.ts'
import { isPrintable } from '../../src/job/envelope/text.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { readCsv } from '../rows/csv.ts'
import { FileError } from '../rows/file-error.ts'
import type { Format } from '../rows/input-format.ts'
import { readLines } from '../rows/lines.ts'
import { type ColumnOptions, type Layout, layoutOf, resolve } from './columns.ts'
import { type RefusedRow, type Row, rowOf } from './record.ts'

export interface RowOptions extends ColumnOptions {
  format: Format
}

/** Yields the rows. Throws a FileError if the whole file is unusable. */
export async function* readRows(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
  let rows = 0
  for await (const part of options.format === 'csv' ? readCsvRows(bytes, options) : readNdjsonRows(bytes, options)) {
    rows += part.length
    yield part
  }
  if (rows === 0) throw new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
}

const refusedRow = (line: number, reason: Reason, field?: string): RefusedRow => ({ line, uid: '', reason, field })

async function* readCsvRows(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<Row[]> {
  let layout: Layout | undefined
  for await (const rows of readCsv(bytes)) {
    if (layout === undefined) {
      const header = rows.shift()
      if (header === undefined) continue
      if (header.rejected !== undefined) {
        throw new FileError(
          'input',
          `Line ${header.line}: the header cannot be read.`,
          'Export the file as CSV in UTF-8, with a header row.',
        )
      }
      layout = layoutOf(header.fields, options)
    }
    const known = layout
    if (rows.length > 0) {
      yield rows.map(({ line, fields, rejected }) =>
        rejected === undefined
          ? rowOf(line, fields, known)
          : { ...refusedRow(line, rejected), uid: soundId(fields[known.uidAt]) },
      )
    }
  }
}

/** The id of a row that can't be read as a whole; '' if its cell can't be read either, or could hold a card number. */
function soundId(cell = ''): string {
  return isPrintable(cell) && !cell.includes('\ufffd') && !holdsPossiblePan(cell) ? cell : ''
}

const LF = 10

async function* readNdjsonRows(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<Row[]> {
  const read = objectReader(options)
  let line = 0
  for await (const { bytes: block, tooLong } of readLines(bytes, () => line)) {
    const rows: Row[] = []
    if (tooLong) rows.push(refusedRow(++line, 'row_too_long'))
    for (let start = 0; start < block.length; ) {
      const found = block.indexOf(LF, start)
      const end = found < 0 ? block.length : found
      const text = block.subarray(start, end)
      start = end + 1
      line += 1
      if (text.length === 0 || (text.length === 1 && text[0] === 13)) continue
      rows.push(read(line, text))
    }
    if (rows.length > 0) yield rows
  }
}

function objectReader(options: ColumnOptions): (line: number, text: Buffer) => Row {
  // Each row may have other keys, so each set of keys has a layout of its own.
  const layouts = new Map<string, Layout>()
  return (line, text) => {
    if (!isUtf8(text)) return refusedRow(line, 'row_utf8')
    const object = readObject(text)
    if (object === undefined) return refusedRow(line, 'row_json')
    const keys = Object.keys(object)
    const cells: string[] = []
    for (const key of keys) {
      const cell = cellOf(object[key])
      if (cell === undefined) return refusedRow(line, 'field_type', resolve(key, options) ?? undefined)
      cells.push(cell)
    }
    const shape = JSON.stringify(keys)
    const layout = layouts.get(shape) ?? layoutOfKeys(keys, options)
    if ('reason' in layout) return refusedRow(line, layout.reason, layout.field)
    if (layouts.size < LAYOUTS_MAX) layouts.set(shape, layout)
    return rowOf(line, cells, layout)
  }
}
const LAYOUTS_MAX = 1_000

/** The layout of one row's keys. An error that would make a header unusable refuses only this row. */
function layoutOfKeys(
  keys: readonly string[],
  options: ColumnOptions,
): Layout | { reason: Reason; field: string | undefined } {
  const names = keys.map(key => resolve(key, options))
  if (names.includes(undefined)) return { reason: 'field_unknown', field: undefined }
  const missing = ['transaction_uid', 'entity_uid', 'type', 'currency', 'created_at'].find(
    name => !(names as unknown[]).includes(name),
  )
  if (missing !== undefined) return { reason: 'field_required', field: missing }
  if (!names.includes('amount') && !names.includes('amount_minor')) return { reason: 'field_required', field: 'amount' }
  const twice = names.find((name, index) => name !== null && names.indexOf(name) !== index)
  const both = (['amount', 'fee', 'commission'] as const).find(
    name => names.includes(name) && names.includes(`${name}_minor`),
  )
  if (twice || both) return { reason: 'field_conflict', field: twice ?? both }
  return layoutOf(
    names.map(name => name ?? ''),
    { ignoreUnknown: true },
  )
}

/**
 * The text of a value. Undefined for anything but a text, a number or null, and for a number that a double may not hold
 * exactly, because it would become another amount.
 */
function cellOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null) return ''
  if (typeof value !== 'number') return undefined
  const text = String(value)
  return /^-?\d+(\.\d+)?$/.test(text) && text.replace(/\D/g, '').length <= 15 ? text : undefined
}
