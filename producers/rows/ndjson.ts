// One flat JSON object per line, with the CSV's column names as keys and texts or whole numbers as values. The first
// row stands in for a header: a key unknown there stops the run, one that turns up later rejects its row.
import { isUtf8 } from 'node:buffer'
import type { Reason } from '../../src/errors.ts'
import { COLUMN_NAMES } from './columns.ts'
import { FileError } from './file-error.ts'
import { absent, type ColumnOptions, checkColumns, type Layout, resolve, shown } from './layout.ts'
import { readLines } from './lines.ts'

export interface NdjsonRow {
  line: number
  /** In the order of `ndjsonLayout`; empty if the row is rejected. */
  cells: readonly string[]
  rejected: Reason | undefined
}

const LF = 10
const QUOTE = 34
const COLON = 58
const BACKSLASH = 92
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const OPEN_BRACKET = 91
const CLOSE_BRACKET = 93
const PLACES_MAX = 1_000
const NO_CELLS: readonly string[] = []

/** Every column of ours has its place, and the echoed ones follow. */
export function ndjsonLayout(options: ColumnOptions): Layout {
  checkColumns(options)
  const at = absent()
  for (const [index, name] of COLUMN_NAMES.entries()) at[name] = index
  const echo = (options.echo ?? []).map((_, index) => COLUMN_NAMES.length + index)
  return { recordKind: options.recordKind, at, echo }
}

export async function* readNdjson(bytes: AsyncIterable<Buffer>, options: ColumnOptions): AsyncGenerator<NdjsonRow[]> {
  const read = cellReader(options)
  let line = 0
  for await (const { bytes: block, tooLong } of readLines(bytes)) {
    const rows: NdjsonRow[] = []
    if (tooLong) rows.push({ line: ++line, cells: NO_CELLS, rejected: 'row_too_long' })
    for (let start = 0; start < block.length; ) {
      const end = block.indexOf(LF, start)
      const text = block.subarray(start, end < 0 ? block.length : end)
      start = end < 0 ? block.length : end + 1
      line++
      if (text.length === 0 || (text.length === 1 && text[0] === 13)) continue
      if (text.includes(0)) rows.push({ line, cells: NO_CELLS, rejected: 'row_nul' })
      else if (!isUtf8(text)) rows.push({ line, cells: NO_CELLS, rejected: 'row_utf8' })
      else rows.push(read(line, text.toString('utf8')))
    }
    if (rows.length > 0) yield rows
  }
}

/** Where a key's value goes: its place among our columns and among the echoed ones, -1 for neither. */
interface Place {
  own: number
  echo: number
}

function cellReader(options: ColumnOptions): (line: number, text: string) => NdjsonRow {
  const { at } = ndjsonLayout(options)
  const echo = options.echo ?? []
  const blank = new Array<string>(COLUMN_NAMES.length + echo.length).fill('')
  const places = new Map<string, Place>()
  let first = true

  const placeOf = (key: string): Place | undefined => {
    const known = places.get(key)
    if (known !== undefined) return known
    const ours = resolve(key, options)
    if (ours === undefined) return undefined
    const index = echo.indexOf(key)
    const place = { own: ours === null ? -1 : at[ours], echo: index < 0 ? -1 : COLUMN_NAMES.length + index }
    // Keys that --ignore-unknown drops may be without number.
    if (places.size < PLACES_MAX) places.set(key, place)
    return place
  }

  return (line, text) => {
    const reject = (rejected: Reason): NdjsonRow => ({ line, cells: NO_CELLS, rejected })
    const record = parseObject(text)
    if (record === undefined) return reject('row_json')
    const keys = Object.keys(record)
    const cells = blank.slice()
    for (const key of keys) {
      const place = placeOf(key)
      if (place === undefined) {
        if (first) throw unknownKey(line, key)
        return reject('field_unknown')
      }
      if (place.own < 0 && place.echo < 0) continue
      const value = textOf(record[key])
      if (value === undefined) return reject('field_type')
      if (place.echo >= 0) cells[place.echo] = value
      if (place.own < 0 || value === '') continue
      if (cells[place.own] !== '') return reject('field_conflict')
      cells[place.own] = value
    }
    if (countKeys(text) !== keys.length) return reject('row_json')
    first = false
    return { line, cells, rejected: undefined }
  }
}

function unknownKey(line: number, key: string): FileError {
  const next = 'Name it with --map FILE, or drop such keys with --ignore-unknown.'
  return new FileError('usage', `Line ${line}: unknown key ${shown(key)}.`, next)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const flat = typeof value === 'object' && value !== null && !Array.isArray(value)
    return flat ? (value as Record<string, unknown>) : undefined
  } catch {
    // Its message would quote the row.
    return undefined
  }
}

// A number that a double can't hold exactly would be another card's.
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null) return ''
  return Number.isSafeInteger(value) ? String(value) : undefined
}

/** Keys as they are written: JSON.parse lets the last of two equal ones win without a word. `text` is a valid object. */
function countKeys(text: string): number {
  let keys = 0
  let depth = 0
  // A colon outside of strings stands behind each key, and nowhere else.
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COLON && depth === 1) keys++
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--
  }
  return keys
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end
  }
}
