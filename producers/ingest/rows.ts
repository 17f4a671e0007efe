// Reads the bytes of a file of transactions as rows, CSV or NDJSON. Plain lines of CSV are read in plain-lines.ts.
import { isUtf8 } from 'node:buffer'
import type { Reason } from '../../src/errors.ts'
import { readObject } from '../../src/job/envelope/strict-json.ts'
import { type CsvRow, type CsvSink, readCsvInto } from '../rows/csv.ts'
import { FileError } from '../rows/file-error.ts'
import type { Format } from '../rows/input-format.ts'
import { readLines } from '../rows/lines.ts'
import { type ColumnOptions, type Layout, layoutOf, resolve } from './columns.ts'
import { openPlain, type PlainReader } from './plain-lines.ts'
import { type RefusedRow, type Row, type RowTaker, rowOf, soundId } from './record.ts'

export interface RowOptions extends ColumnOptions {
  format: Format
}

/** Gives the rows to `taker`, and yields from time to time. Throws a FileError if the whole file is unusable. */
export function readRows(
  bytes: AsyncIterable<Buffer>,
  options: RowOptions,
  taker: RowTaker,
): AsyncGenerator<undefined> {
  return options.format === 'csv' ? readCsvInto(bytes, csvSink(options, taker)) : readNdjsonRows(bytes, options, taker)
}

const refusedRow = (line: number, reason: Reason, field?: string): RefusedRow => ({ line, uid: '', reason, field })

/** Takes the rows of CSV. `lines` takes plain lines; without it, `put` takes all lines and makes the same of them. */
export function csvSink(options: ColumnOptions, taker: RowTaker): CsvSink {
  let layout: Layout | undefined
  let plain: PlainReader | undefined
  return {
    put(row) {
      if (layout) {
        taker.row(csvRow(row, layout))
        return
      }
      if (row.rejected !== undefined) {
        throw new FileError(
          'input',
          `Line ${row.line}: the header cannot be read.`,
          'Export the file as CSV in UTF-8, with a header row.',
        )
      }
      layout = layoutOf(row.fields, options)
      plain = openPlain(layout, row.fields.length, taker)
    },
    lines: (bytes, line, split) => plain?.(bytes, line, split) ?? 0,
  }
}

function csvRow({ line, fields, rejected }: CsvRow, layout: Layout): Row {
  if (rejected === undefined) return rowOf(line, fields, layout)
  return { ...refusedRow(line, rejected), uid: soundId(fields[layout.uidAt]) }
}

const LF = 10

async function* readNdjsonRows(
  bytes: AsyncIterable<Buffer>,
  options: ColumnOptions,
  taker: RowTaker,
): AsyncGenerator<undefined> {
  const read = objectReader(options)
  let line = 0
  for await (const { bytes: block, tooLong } of readLines(bytes, () => line)) {
    if (tooLong) taker.row(refusedRow(++line, 'row_too_long'))
    for (let start = 0; start < block.length; ) {
      const found = block.indexOf(LF, start)
      const end = found < 0 ? block.length : found
      const text = block.subarray(start, end)
      start = end + 1
      line += 1
      if (text.length === 0 || (text.length === 1 && text[0] === 13)) continue
      taker.row(read(line, text))
    }
    yield
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
