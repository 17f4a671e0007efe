// Reads one flat JSON object per line, with the CSV's column names as keys and texts or whole numbers as values. The
// first row is treated as a header: an unknown key there stops the run, an unknown key later rejects its row.
import { isUtf8 } from 'node:buffer'
import type { Reason } from '../../src/errors.ts'
import { countKeys } from '../../src/json-keys.ts'
import { COLUMN_NAMES } from './columns.ts'
import { FileError } from './file-error.ts'
import { absent, type ColumnOptions, checkColumns, columnsOf, type Layout, resolve, shown } from './layout.ts'
import { readLines } from './lines.ts'
import { readIso } from './time-form.ts'

export interface NdjsonRow {
  line: number
  /** In the order of `ndjsonLayout`; of a rejected row only its reference, or nothing. */
  cells: readonly string[]
  rejected: Reason | undefined
}

const LF = 10
const CR = 13
const PLACES_MAX = 1_000
const NO_CELLS: readonly string[] = []

/** Each column of COLUMNS has its position; the echoed columns follow, then the kept ones, then the source time. */
export function ndjsonLayout(options: ColumnOptions): Layout {
  checkColumns(options)
  const at = absent()
  for (const [index, name] of COLUMN_NAMES.entries()) at[name] = index
  const echo = (options.echo ?? []).map((_, index) => COLUMN_NAMES.length + index)
  const keep = options.keep?.map((_, index) => COLUMN_NAMES.length + echo.length + index)
  const timeAt = COLUMN_NAMES.length + echo.length + (keep?.length ?? 0)
  const sourceTime = options.timeColumn === undefined ? undefined : { at: timeAt, read: readIso }
  return { recordKind: options.recordKind, at, echo, keep, sourceTime }
}

export async function* readNdjson(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<NdjsonRow[]> {
  const read = cellReader(options)
  let line = 0
  for await (const { bytes: block, tooLong } of readLines(bytes, () => line)) {
    const rows: NdjsonRow[] = []
    if (tooLong) rows.push(reject(++line, 'row_too_long'))
    for (let start = 0; start < block.length; ) {
      const next = block.indexOf(LF, start) + 1 || block.length + 1
      const row = readLine(++line, block.subarray(start, next - 1), read)
      if (row) rows.push(row)
      start = next
    }
    if (rows.length > 0) yield rows
  }
}

const reject = (line: number, rejected: Reason): NdjsonRow => ({ line, cells: NO_CELLS, rejected })

/** Reads one line. `isClean` is false if the text has U+FFFD in place of bytes that aren't UTF-8. */
type ReadText = (line: number, text: string, isClean: boolean) => NdjsonRow

/** Reads one line; undefined for an empty line. */
function readLine(line: number, bytes: Buffer, read: ReadText): NdjsonRow | undefined {
  if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === CR)) return undefined
  if (bytes.includes(0)) return reject(line, 'row_nul')
  return read(line, bytes.toString('utf8'), isUtf8(bytes))
}

/** The positions of a key's value among the columns, the echoed ones, the kept ones and as source time; -1 for none. */
interface Place {
  own: number
  echo: number
  keep: number
  time: number
}

function cellReader(options: ColumnOptions): ReadText {
  const { at, sourceTime } = ndjsonLayout(options)
  const { echo = [], keep = [] } = options
  const keepAt = COLUMN_NAMES.length + echo.length
  const blank = new Array<string>(keepAt + keep.length + (sourceTime ? 1 : 0)).fill('')
  const places = new Map<string, Place>()
  let first = true

  const placeOf = (key: string): Place | undefined => {
    const known = places.get(key)
    if (known !== undefined) return known
    const ours = resolve(key, options)
    if (ours === undefined) return undefined
    const index = echo.indexOf(key)
    const kept = keep.findIndex(({ field }) => field === key)
    const place = {
      own: ours === null ? -1 : at[ours],
      echo: index < 0 ? -1 : COLUMN_NAMES.length + index,
      keep: kept < 0 ? -1 : keepAt + kept,
      time: sourceTime && key === options.timeColumn ? sourceTime.at : -1,
    }
    // --ignore-unknown may drop any number of keys, so the cache of places is limited.
    if (places.size < PLACES_MAX) places.set(key, place)
    return place
  }

  const isUnknown = (key: string) => placeOf(key) === undefined

  /** The cells of a rejected row: its reference alone; none if a key occurs twice, or not exactly one means it. */
  const cellsOfReference = (text: string, record: Record<string, unknown> = {}): readonly string[] => {
    const keys = Object.keys(record)
    const named = keys.filter(key => placeOf(key)?.own === at.reference)
    const [key] = named
    const value = key === undefined ? undefined : textOf(record[key])
    if (named.length !== 1 || value === undefined || countKeys(text) !== keys.length) return NO_CELLS
    return blank.with(at.reference, value)
  }

  return (line, text, isClean) => {
    const record = parseObject(text)
    if (!isClean) return { line, cells: cellsOfReference(text, record), rejected: 'row_utf8' }
    if (record === undefined) return reject(line, 'row_json')
    const keys = Object.keys(record)
    const cells = blank.slice()
    for (const key of keys) {
      const place = placeOf(key)
      if (place === undefined && first) throw unknownKeys(line, keys.filter(isUnknown), options)
      const wrong = place === undefined ? 'field_unknown' : putValue(cells, place, record[key])
      if (wrong !== undefined) return { line, cells: cellsOfReference(text, record), rejected: wrong }
    }
    // JSON.parse silently keeps the last of two equal keys.
    if (countKeys(text) !== keys.length) return reject(line, 'row_json')
    first = false
    return { line, cells, rejected: undefined }
  }
}

function putValue(cells: string[], { own, echo, keep, time }: Place, value: unknown): Reason | undefined {
  if (own < 0 && echo < 0 && time < 0) return undefined
  const cell = textOf(value)
  if (cell === undefined) return 'field_type'
  if (keep >= 0) cells[keep] = cell
  if (time >= 0) cells[time] = cell
  if (echo >= 0) cells[echo] = cell
  if (own < 0 || cell === '') return undefined
  if (cells[own] !== '') return 'field_conflict'
  cells[own] = cell
  return undefined
}

const UNKNOWN_MAX = 10

function unknownKeys(line: number, keys: readonly string[], { recordKind }: ColumnOptions): FileError {
  const more = keys.length > UNKNOWN_MAX ? ` and ${keys.length - UNKNOWN_MAX} more` : ''
  const named = `unknown key ${keys.slice(0, UNKNOWN_MAX).map(shown).join(', ')}${more}`
  const next = 'Name them with --map FILE, or drop such keys with --ignore-unknown.'
  return new FileError('usage', `Line ${line}: ${named}.`, `${next} ${columnsOf(recordKind)}`)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    refusePowers(value, () => text)
    return value as Record<string, unknown>
  } catch {
    // The parser's message would quote the row, so it isn't used.
    return undefined
  }
}

/**
 * The text of a value; undefined for a number that a double can't hold exactly (it would be another card's number), and
 * for any other type.
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null) return ''
  return Number.isSafeInteger(value) ? String(value) : undefined
}

/** From here on a number may be a card's. */
const LONG = 1e11
const POWER = /\d[eE][+-]?\d/
const STRINGS = /"(?:[^"\\]|\\.)*"/gs

/**
 * Makes long numbers NaN, which no field accepts, if the text that was parsed has a number with a power of ten: a
 * spreadsheet writes them so once it has rounded them, and the digits that were lost would be zeros.
 */
export function refusePowers(parsed: object, text: () => string): void {
  const long: (() => void)[] = []
  const open: object[] = [parsed]
  for (let object = open.pop(); object; object = open.pop()) {
    const holder = object
    for (const [name, value] of Object.entries(holder)) {
      if (typeof value === 'object' && value !== null) open.push(value)
      else if (typeof value === 'number' && Math.abs(value) >= LONG)
        long.push(() => Reflect.set(holder, name, Number.NaN))
    }
  }
  if (long.length > 0 && POWER.test(text().replace(STRINGS, ''))) for (const refuse of long) refuse()
}
