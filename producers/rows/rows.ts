// Reads an input as records that are ready to be sent, in arrays. Each record has the number of its physical line in
// the file.

import { UNPLAIN } from './column-record.ts'
import { readCsv, takeSeparator } from './csv.ts'
import { FileError } from './file-error.ts'
import type { Format } from './input-format.ts'
import { type ColumnOptions, type Layout, layoutOf } from './layout.ts'
import { LINE_BYTES_MAX } from './lines.ts'
import { ndjsonLayout, readNdjson } from './ndjson.ts'
import { keepOnly, type OnlyList } from './only/list.ts'
import type { Profile } from './profile/profile.ts'
import { measureProfiled, type ProfiledRow, profiledLayout, readProfiled } from './profile/read.ts'
import { type KeptField, keptText } from './profile/records.ts'
import { RFC_4180 } from './quoted.ts'
import { buildRow, type Row, rejectRow, rejectUnread, skipRow } from './record.ts'

export type { Row } from './record.ts'

export interface RowOptions extends ColumnOptions {
  format: Format
  /** How the provider wrote the file; then `format` and column names aren't used. */
  profile?: Profile | undefined
  /** The list of rows that are to be sent (`--only`); the others are skipped. */
  only?: OnlyList | undefined
  /** If set, every row of a file with owners names its owner, even if it is rejected or skipped. */
  owners?: boolean | undefined
  /** Fields of the file whose texts each row keeps. */
  keep?: readonly KeptField[] | undefined
}

/** Yields the rows of up to 64 KiB of text at a time. Throws a FileError if the whole file is unusable. */
export async function* readRows(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
  let rows = 0
  const { only } = options
  for await (const part of partsOf(bytes, options)) {
    rows += part.length
    yield only ? part.map(row => keepOnly(row, only)) : part
  }
  if (rows === 0) throw empty()
}

function partsOf(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
  if (options.profile) return profiledRows(bytes, options.profile, options)
  return options.format === 'csv' ? csvRows(bytes, options) : ndjsonRows(bytes, options)
}

export interface Counted {
  rows: number
  /** How many of the rows are skipped, if `recordBytesMax` is finite. */
  skipped: number
  /** The most bytes that a record takes; infinite if that isn't known. */
  recordBytesMax: number
}

/** Counts the rows that readRows would yield and refuses what it would refuse, without building a record. */
export async function countRows(bytes: AsyncIterable<Buffer>, options: RowOptions): Promise<Counted> {
  let rows = 0
  let valuesMax = VALUES_BYTES_USUAL
  const count = (cells: readonly string[]) => {
    rows += 1
    let units = 0
    for (const cell of cells) units += cell.length
    if (units * UNIT_BYTES_MAX > valuesMax) valuesMax = Math.max(valuesMax, bytesInJson(cells))
  }
  if (options.profile) {
    const { unitsMax, ...counted } = await measureProfiled(bytes, options.profile, asked(options))
    return {
      ...counted,
      recordBytesMax: options.only ? UNKNOWN : unitsMax * UNIT_BYTES_MAX + ownBytesOf(options.profile),
    }
  }
  if (options.format === 'csv') {
    for await (const part of csvRowsRaw(bytes, options)) for (const { fields } of part.rows) count(fields)
  } else {
    for await (const part of readNdjson(bytes, options)) for (const { cells } of part) count(cells)
  }
  if (rows === 0) throw empty()
  // With `--only` the number of listed rows is known only when they are built.
  return { rows, skipped: 0, recordBytesMax: options.only ? UNKNOWN : valuesMax + FRAME_BYTES_MAX }
}

const UNKNOWN = Number.POSITIVE_INFINITY

/** Values of so many bytes make no chunk too long, so the bytes of shorter ones aren't counted exactly. */
const VALUES_BYTES_USUAL = 1_536

/** The most bytes that values take in JSON; exact for texts that need no escapes, such as a JWE. */
function bytesInJson(values: readonly string[]): number {
  let bytes = 0
  for (const text of values) bytes += UNPLAIN.test(text) ? text.length * UNIT_BYTES_MAX : Buffer.byteLength(text)
  return bytes
}

/** The most bytes that a UTF-16 unit takes in JSON: `\u0001`. */
const UNIT_BYTES_MAX = 6
/** The most bytes of a record besides its values: its line number and the names of all members, or of `on_file`. */
const FRAME_BYTES_MAX = 1_000

/** The most bytes of a record that don't come from its row: the names of its members, and texts of the profile. */
function ownBytesOf({ columns, on_file: onFile }: Profile): number {
  return 2 * FRAME_BYTES_MAX + Buffer.byteLength(JSON.stringify([columns, onFile]))
}

async function* csvRows(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
  for await (const { rows, layout } of csvRowsRaw(bytes, options)) {
    yield rows.map(({ line, fields, rejected }) =>
      rejected === undefined ? rowOfCells(line, fields, layout) : rejectUnread(line, rejected, fields, layout),
    )
  }
}

async function* csvRowsRaw(bytes: AsyncIterable<Buffer>, options: RowOptions) {
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

async function* ndjsonRows(bytes: AsyncIterable<Buffer>, options: RowOptions): AsyncGenerator<Row[]> {
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

async function* profiledRows(
  bytes: AsyncIterable<Buffer>,
  profile: Profile,
  options: RowOptions,
): AsyncGenerator<Row[]> {
  const layout = { ...profiledLayout(profile, asked(options)), inColumns: options.inColumns }
  const isNested = profile.format.type === 'json'
  let number = 0
  for await (const rows of readProfiled(bytes, profile, asked(options))) {
    yield rows.map(row => rowOf(row, layout, isNested ? ++number : row.line))
  }
}

function rowOf(given: ProfiledRow, layout: Layout, line: number): Row {
  const { element, item, cells, rejected, reference, skipped, repairs } = given
  const row = skipped
    ? skipRow(line, skipped, reference)
    : rejected
      ? rejectRow(line, rejected, reference, undefined, '', given.field)
      : buildRow(line, cells, layout, given.onFile?.json)
  row.repairs = repairs
  if (row.rejected === undefined) {
    row.onFile = given.onFile?.traits
    row.cardLike = given.onFile?.cardLike
  }
  row.number = given.number
  if (given.kept) row.kept = given.kept
  if (given.owner) row.owner = given.owner
  if (element === undefined) return row
  row.fileLine = given.line
  row.item = item === undefined ? String(element) : `${element}.${item}`
  return row
}

function asked({ echo = [], keep, timeColumn, only, owners = only?.namesOwners }: RowOptions) {
  return { recordKind: 'token-create' as const, echo, keep, timeColumn, owners }
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

function empty(): FileError {
  return new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
}
