// Reads CSV or NDJSON in the columns that all files share, as records that are ready to be sent, in arrays. Each record has
// the number of its physical line in the file. file-rows.ts also reads what providers write.

import { readCsv, takeSeparator } from './csv.ts'
import { FileError } from './file-error.ts'
import type { Format } from './input-format.ts'
import { keptText } from './kept.ts'
import { type ColumnOptions, type Layout, layoutOf } from './layout.ts'
import { LINE_BYTES_MAX } from './lines.ts'
import { ndjsonLayout, readNdjson } from './ndjson.ts'
import { RFC_4180 } from './quoted.ts'
import { buildRow, type Row, rejectUnread } from './record.ts'

export type { Row } from './record.ts'

export interface Counted {
  rows: number
  /** How many of the rows are skipped, if `recordBytesMax` is finite. */
  skipped: number
  /** The most bytes that a record takes; infinite if that isn't known. */
  recordBytesMax: number
}

export interface PlainOptions extends ColumnOptions {
  format: Format
}

/** Yields the rows of up to 64 KiB of text at a time. Throws a FileError if the whole file is unusable. */
export async function* readPlainRows(bytes: AsyncIterable<Buffer>, options: PlainOptions): AsyncGenerator<Row[]> {
  let rows = 0
  for await (const part of options.format === 'csv' ? csvRows(bytes, options) : ndjsonRows(bytes, options)) {
    rows += part.length
    yield part
  }
  if (rows === 0) throw noRows()
}

/** Hands over the cells of each row, of which no record is built. Throws a FileError if the whole file is unusable. */
export async function countPlainCells(
  bytes: AsyncIterable<Buffer>,
  options: PlainOptions,
  count: (cells: readonly string[]) => void,
): Promise<void> {
  if (options.format === 'csv')
    for await (const part of csvRowsRaw(bytes, options)) for (const { fields } of part.rows) count(fields)
  else for await (const part of readNdjson(bytes, options)) for (const { cells } of part) count(cells)
}

async function* csvRows(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<Row[]> {
  for await (const { rows, layout } of csvRowsRaw(bytes, options)) {
    yield rows.map(({ line, fields, rejected }) =>
      rejected === undefined ? rowOfCells(line, fields, layout) : rejectUnread(line, rejected, fields, layout),
    )
  }
}

async function* csvRowsRaw(bytes: AsyncIterable<Buffer>, options: ColumnOptions) {
  let layout: Layout | undefined
  const { bytes: text, delimiter } = await takeSeparator(bytes)
  const separated = delimiter === undefined ? {} : { dialect: { ...RFC_4180, delimiter }, firstLine: 2 }
  for await (const rows of readCsv(text, separated)) {
    if (layout === undefined) {
      const header = rows.shift()
      if (header === undefined) continue
      if (header.rejected !== undefined) throw badHeader(header.line, header.rejected)
      layout = { ...layoutOf(header.fields, header.line, options), inColumns: options.inColumns }
    }
    if (rows.length > 0) yield { rows, layout }
  }
}

async function* ndjsonRows(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<Row[]> {
  const layout = { ...ndjsonLayout(options), inColumns: options.inColumns }
  for await (const rows of readNdjson(bytes, options)) {
    yield rows.map(({ line, cells, rejected }) =>
      rejected === undefined ? rowOfCells(line, cells, layout) : rejectUnread(line, rejected, cells, layout),
    )
  }
}

function rowOfCells(line: number, cells: readonly string[], layout: Layout): Row {
  const row = buildRow(line, cells, layout)
  if (layout.keep) row.kept = layout.keep.map(index => keptText(cells[index] ?? ''))
  return row
}

const HEADER_WRONG: Record<string, string> = {
  row_too_long: `is longer than ${LINE_BYTES_MAX / 1024} KiB`,
  row_nul: 'holds NUL bytes',
  row_utf8: 'is not valid UTF-8',
  row_quotes: 'has quotes that do not match',
}

function badHeader(line: number, reason: string): FileError {
  const wrong = `Line ${line}: the header ${HEADER_WRONG[reason] ?? 'cannot be read'}.`
  return new FileError('input', wrong, 'Export the file as CSV in UTF-8, with a header row.')
}

export function noRows(): FileError {
  return new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
}
