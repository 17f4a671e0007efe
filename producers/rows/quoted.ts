// Reads the blocks that csv.ts can't split at once: those with a quote, a NUL, ill-formed UTF-8 or a line that is too
// long. Simple rows (`"a",b,"c"`) are split here; csv-parse reads the others, because it is too slow for files that
// quote every field. A row is complete when its number of quotes is even. If such a row is ill-formed, or doesn't end
// within 64 KiB, only its first line is rejected and the lines after it are read again as rows: an unclosed quote must
// not swallow its neighbours.
import { isUtf8 } from 'node:buffer'
import { type Options, parse } from 'csv-parse/sync'
import type { Reason } from '../../src/errors.ts'
import { LINE_BYTES_MAX } from './lines.ts'

/** A physical line with its end. */
export interface Line {
  line: number
  bytes: Buffer
  quotes: number
  /** The line has neither a NUL nor ill-formed UTF-8. */
  clean: boolean
  tooLong: boolean
}

/** How fields are written. */
export interface Dialect {
  delimiter: string
  /** How a quoted field writes a quote: doubled, or after a backslash. `none`: quotes are ordinary characters. */
  quotes: 'doubled' | 'backslash' | 'none'
}

export const RFC_4180: Dialect = { delimiter: ',', quotes: 'doubled' }

export interface RowSink {
  /** The number of fields in every row, 0 until the first row is put. */
  width(): number
  put(line: number, fields: readonly string[]): void
  reject(line: number, reason: Reason, fields?: readonly string[]): void
}

interface Bound {
  from: number
  count: number
}

const LF = 10
const QUOTE = 34
const BACKSLASH = 92
/** This many rows go to csv-parse at once; if one of them is ill-formed, they are repeated one by one. */
const TOGETHER = 128
const NEEDS_MORE = 0
const UNCLOSED = -1

const PARSE: Options = {
  record_delimiter: ['\n'],
  quote: '"',
  escape: '"',
  relax_column_count: true,
  relax_quotes: false,
  skip_empty_lines: false,
  trim: false,
  bom: false,
  cast: false,
  columns: false,
  comment: null,
  max_record_size: 0,
}

export function linesOf(bytes: Buffer, firstLine: number, dialect = RFC_4180): Line[] {
  const clean = !bytes.includes(0) && isUtf8(bytes)
  const lines: Line[] = []
  const { quotes: style } = dialect
  let start = 0
  let quotes = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) quotes++
    else if (byte === BACKSLASH && style === 'backslash' && isEscapable(bytes[at + 1])) at++
    if (byte === LF || at === bytes.length - 1) {
      lines.push({
        line: firstLine + lines.length,
        bytes: bytes.subarray(start, at + 1),
        quotes: style === 'none' ? 0 : quotes,
        clean,
        tooLong: false,
      })
      start = at + 1
      quotes = 0
    }
  }
  return lines
}

function isEscapable(code: number | undefined): boolean {
  return code === QUOTE || code === BACKSLASH
}

/** Puts the rows of `lines` into the sink. Returns the lines of a row that isn't complete yet; none if `ended`. */
export function readQuoted(lines: Line[], ended: boolean, sink: RowSink, dialect = RFC_4180): Line[] {
  let at = 0
  while (at < lines.length) {
    const group: Bound[] = []
    let end = at
    let count = 1
    while (group.length < TOGETHER && end < lines.length) {
      count = countLines(lines, end, ended)
      if (count < 1) break
      group.push({ from: end, count })
      end += count
    }
    const brokenAt = readGroup(lines, group, sink, dialect)
    at = brokenAt ?? end
    if (brokenAt !== undefined || count > 0) continue
    if (count === NEEDS_MORE) return lines.slice(at)
    sink.reject((lines[at] as Line).line, 'row_quotes')
    at++
  }
  return []
}

/** How many lines the row at `from` takes, or NEEDS_MORE, or UNCLOSED. */
function countLines(lines: Line[], from: number, ended: boolean): number {
  const first = lines[from] as Line
  if (first.quotes % 2 === 0) return 1
  let size = first.bytes.length
  for (let at = from + 1; at < lines.length; at++) {
    const { bytes, quotes, tooLong } = lines[at] as Line
    size += bytes.length
    if (tooLong || size > LINE_BYTES_MAX) return UNCLOSED
    if (quotes % 2 === 1) return at - from + 1
  }
  return ended ? UNCLOSED : NEEDS_MORE
}

/** If a row over several lines is broken, rejects its first line and returns the index of the next. */
function readGroup(lines: Line[], group: Bound[], sink: RowSink, dialect: Dialect): number | undefined {
  const rows = group.map(bound => readBound(lines, bound, dialect))
  const hard = dialect.quotes === 'doubled' ? rows.filter(row => row.fields === undefined) : []
  const parsed = parseRows(
    hard.map(row => row.text),
    dialect.delimiter,
  )
  for (const [index, row] of hard.entries()) row.fields = parsed[index]
  for (const { from, count, clean, text, fields } of rows) {
    const { line, tooLong } = lines[from] as Line
    const narrow = count > 1 && sink.width() > 0 && fields?.length !== sink.width()
    if (tooLong) sink.reject(line, 'row_too_long')
    else if (fields === undefined || narrow) {
      sink.reject(line, 'row_quotes')
      if (count > 1) return from + 1
    } else if (text === '') continue
    else if (clean) sink.put(line, fields)
    else sink.reject(line, text.includes('\0') ? 'row_nul' : 'row_utf8', fields.map(fromLatin1))
  }
  return undefined
}

interface Read extends Bound {
  text: string
  clean: boolean
  /** Undefined until csv-parse has read the row, and if it can't. */
  fields: readonly string[] | undefined
}

function readBound(lines: Line[], { from, count }: Bound, dialect: Dialect): Read {
  const first = lines[from] as Line
  const parts = count === 1 ? [first] : lines.slice(from, from + count)
  const bytes = count === 1 ? first.bytes : Buffer.concat(parts.map(part => part.bytes))
  const clean = parts.every(part => part.clean) || (!bytes.includes(0) && isUtf8(bytes))
  // A row that isn't clean is read as Latin-1 to find its quotes; its content isn't used in that form.
  const whole = bytes.toString(clean ? 'utf8' : 'latin1')
  const text = whole.slice(0, whole.length - (whole.endsWith('\r\n') ? 2 : whole.endsWith('\n') ? 1 : 0))
  const quotes = count === 1 ? first.quotes : parts.reduce((sum, part) => sum + part.quotes, 0)
  const { delimiter } = dialect
  if (dialect.quotes === 'backslash' && quotes > 0) {
    return { from, count, clean, text, fields: splitEscaped(text, delimiter) }
  }
  return { from, count, clean, text, fields: splitSimple(text, quotes, delimiter) }
}

/** A field of a row that was read as Latin-1. U+FFFD replaces bytes that aren't UTF-8. */
function fromLatin1(field: string): string {
  return Buffer.from(field, 'latin1').toString('utf8')
}

/** The fields of a row whose quotes only begin and end fields; undefined for any other row. */
function splitSimple(text: string, quotes: number, delimiter: string): string[] | undefined {
  if (quotes === 0) return text.split(delimiter)
  const code = delimiter.charCodeAt(0)
  const fields: string[] = []
  let met = 0
  for (let at = 0; at <= text.length; ) {
    let end: number
    if (text.charCodeAt(at) === QUOTE) {
      const close = text.indexOf('"', at + 1)
      end = close + 1
      if (close < 0 || (end < text.length && text.charCodeAt(end) !== code)) return undefined
      fields.push(text.slice(at + 1, close))
      met += 2
    } else {
      end = text.indexOf(delimiter, at)
      if (end < 0) end = text.length
      fields.push(text.slice(at, end))
    }
    at = end + 1
  }
  return met === quotes ? fields : undefined
}

/**
 * The fields of a row in which a backslash within quotes escapes a quote or a backslash; undefined for an ill-formed
 * row.
 */
function splitEscaped(text: string, delimiter: string): string[] | undefined {
  const fields: string[] = []
  for (let at = 0; at <= text.length; ) {
    const quoted = text.charCodeAt(at) === QUOTE
    let end = quoted ? closingQuote(text, at) + 1 : text.indexOf(delimiter, at)
    if (end < 0) end = text.length
    if ((quoted && end === 0) || (end < text.length && text[end] !== delimiter)) return undefined
    const field = quoted ? text.slice(at + 1, end - 1).replace(/\\([\\"])/g, '$1') : text.slice(at, end)
    if (!quoted && field.includes('"')) return undefined
    fields.push(field)
    at = end + 1
  }
  return fields
}

/** The index of the closing quote, -1 if there is none. */
function closingQuote(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at
    if (code === BACKSLASH && isEscapable(text.charCodeAt(at + 1))) at++
  }
  return -1
}

function parseRows(texts: string[], delimiter: string): (readonly string[] | undefined)[] {
  if (texts.length === 0) return []
  const together = tryParse(texts.join('\n'), delimiter)
  if (together?.length === texts.length) return together
  return texts.map(text => {
    const alone = tryParse(text, delimiter)
    return alone?.length === 1 ? alone[0] : undefined
  })
}

function tryParse(text: string, delimiter: string): string[][] | undefined {
  try {
    return parse(text, { ...PARSE, delimiter })
  } catch {
    // The parser's message would quote the row, so it isn't used.
    return undefined
  }
}
