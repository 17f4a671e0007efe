// Reads RFC 4180: rows with the physical line at which each starts. Lines without a quote, which most files have, are
// split here at once; quoted.ts reads the lines around a quote, and blocks whose bytes aren't clean text. The meaning of
// a column isn't known here.
import { isAscii, isUtf8 } from 'node:buffer'
import type { Reason } from '../../src/errors.ts'
import { type Block, readLines, withoutByteOrderMark } from './lines.ts'
import { type Dialect, type Line, linesOf, RFC_4180, type RowSink, readQuoted } from './quoted.ts'

export interface CsvRow {
  line: number
  /** The fields of a row; of a rejected row those that could be separated, else none. */
  fields: readonly string[]
  rejected: Reason | undefined
}

const LF = 10
const CR = 13
const QUOTE = 34
const NO_FIELDS: readonly string[] = []

export interface CsvOptions {
  dialect?: Dialect
  /** The number of the physical line at which the bytes begin. */
  firstLine?: number
  /** The number of fields that a row must have; default: that of the first row. */
  width?: number | undefined
  /** Rows whose first field is one of these may have any number of fields. */
  marks?: readonly string[]
}

/** Takes what is read, in the order of the file. */
export interface CsvSink {
  put(row: CsvRow): void
  /**
   * Takes whole lines of UTF-8 without a quote and without a NUL, instead of `put`. Never called before the header was
   * put. `line`: the number of the first line; `split`: for each line that the sink leaves to this file, with its
   * fields. Returns the number of lines, with the empty ones.
   */
  lines?(bytes: Buffer, line: number, split: (line: number, fields: readonly string[]) => void): number
}

/**
 * Reads rows. The first row is the header. A row with another number of fields is rejected. Yields the rows of up to 64
 * KiB of text at a time.
 */
export async function* readCsv(bytes: AsyncIterable<Buffer>, options: CsvOptions = {}): AsyncGenerator<CsvRow[]> {
  let rows: CsvRow[] = []
  for await (const _ of readCsvInto(bytes, { put: row => rows.push(row) }, options)) {
    if (rows.length > 0) yield rows
    rows = []
  }
}

/** Reads rows as `readCsv` does, and gives them to `to`. Yields after up to 64 KiB of text, and at the end. */
export async function* readCsvInto(
  bytes: AsyncIterable<Buffer>,
  to: CsvSink,
  options: CsvOptions = {},
): AsyncGenerator<undefined> {
  const { dialect = RFC_4180, marks = [] } = options
  const { delimiter } = dialect
  let line = options.firstLine ?? 1
  let width = options.width ?? 0
  let open: Line[] = []
  // If a row has more or fewer fields than the header, its fields may be shifted.
  const reject = (at: number, rejected: Reason, fields = NO_FIELDS) => {
    to.put({ line: at, fields: fields.length === width ? fields : NO_FIELDS, rejected })
  }
  const put = (at: number, fields: readonly string[]) => {
    if (width === 0) width = fields.length
    if (fields.length === width) to.put({ line: at, fields, rejected: undefined })
    else reject(at, 'row_fields')
  }
  const putMarked = (at: number, fields: readonly string[]) => {
    if (marks.includes(fields[0] ?? '')) to.put({ line: at, fields, rejected: undefined })
    else put(at, fields)
  }
  const sink: RowSink = { width: () => width, put: marks.length > 0 ? putMarked : put, reject }
  const { put: add } = sink

  const split = (text: string) => {
    for (let start = 0; start < text.length; line++) {
      let end = text.indexOf('\n', start)
      if (end < 0) end = text.length
      const stop = end > start && text.charCodeAt(end - 1) === CR ? end - 1 : end
      if (stop > start) add(line, text.slice(start, stop).split(delimiter))
      start = end + 1
    }
  }
  const readPlain = (block: Buffer, encoding: 'latin1' | 'utf8') => {
    let at = 0
    // The header goes alone, because the sink reads the other lines by it. Empty lines may precede it.
    while (to.lines && width === 0 && at < block.length) {
      const end = block.indexOf(LF, at) + 1 || block.length
      split(block.toString(encoding, at, end))
      at = end
    }
    if (to.lines && at < block.length) line += to.lines(block.subarray(at), line, add)
    else split(block.toString(encoding, at))
  }
  const readSlowly = (block: Buffer, tooLong = false) => {
    const lines = tooLong ? [{ line, bytes: block, quotes: 0, clean: true, tooLong }] : linesOf(block, line, dialect)
    line += lines.length
    open = readQuoted(open.length > 0 ? [...open, ...lines] : lines, false, sink, dialect)
  }
  const read = ({ bytes: block, tooLong }: Block) => {
    const encoding = isAscii(block) ? 'latin1' : isUtf8(block) ? 'utf8' : undefined
    if (tooLong || encoding === undefined || block.includes(0)) return readSlowly(block, tooLong)
    for (let at = 0; at < block.length; ) {
      // A row whose quote is still open continues with the next lines, whatever they hold.
      const quoted = open.length > 0 ? { from: at, to: block.length } : quotedPart(block, at, dialect)
      if (quoted.from > at) readPlain(block.subarray(at, quoted.from), encoding)
      if (quoted.to > quoted.from) readSlowly(block.subarray(quoted.from, quoted.to))
      at = quoted.to
    }
  }

  for await (const block of readLines(bytes, () => line - 1)) {
    read(block)
    yield
  }
  readQuoted(open, true, sink, dialect)
  yield
}

/** The most bytes of the line `sep=;`, with its end. */
const SEPARATOR_BYTES_MAX = 16

export const SEPARATOR = /^"?sep=([^A-Za-z0-9"\\\r\n\0 ])"?(?:\r?\n|$)/i

export interface Separated {
  /** The bytes without that line. */
  bytes: AsyncIterable<Buffer>
  /** What the line names; undefined if there is no such line. */
  delimiter: string | undefined
}

/** Takes off a first line `sep=;`, by which a spreadsheet is told the delimiter of the lines that follow. */
export async function takeSeparator(bytes: AsyncIterable<Buffer>): Promise<Separated> {
  const source = withoutByteOrderMark(bytes)[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  let next = await source.next()
  while (!next.done) {
    head = Buffer.concat([head, next.value])
    if (head.length >= SEPARATOR_BYTES_MAX) break
    next = await source.next()
  }
  const line = SEPARATOR.exec(head.toString('latin1', 0, SEPARATOR_BYTES_MAX))
  const first = line ? head.subarray(line[0].length) : head
  async function* rest() {
    try {
      if (first.length > 0) yield first
      for (let more = await source.next(); !more.done; more = await source.next()) yield more.value
    } finally {
      await source.return?.(undefined)
    }
  }
  return { bytes: rest(), delimiter: line?.[1] }
}

/** Lines with a quote are read together with the lines between them, if those are fewer bytes than this. */
const GAP_BYTES = 2_048

/** The next whole lines from `at` on that can't be split at once; both are the end of the block if there are none. */
function quotedPart(block: Buffer, at: number, { quotes }: Dialect): { from: number; to: number } {
  const none = { from: block.length, to: block.length }
  let quote = quotes === 'none' ? -1 : block.indexOf(QUOTE, at)
  if (quote < 0) return none
  const from = block.lastIndexOf(LF, quote) + 1
  let to = from
  while (quote >= 0 && quote - to <= GAP_BYTES) {
    const end = block.indexOf(LF, quote)
    to = end < 0 ? block.length : end + 1
    quote = block.indexOf(QUOTE, to)
  }
  return { from, to }
}
