// The form of a file, guessed from its first bytes: encoding, format, delimiter, header. column-guess.ts guesses what
// its columns hold.
import { isUtf8 } from 'node:buffer'
import { readCsv, SEPARATOR, takeSeparator } from '../rows/csv.ts'
import { toUtf8 } from '../rows/profile/encoding.ts'
import type { Encoding } from '../rows/profile/format.ts'

/** How many bytes of a file are examined before it is read as a whole. */
export const HEAD_BYTES = 1024 * 1024

export interface FileForm {
  type: 'delimited' | 'ndjson' | 'json'
  encoding: Encoding
  /** The delimiter of delimited text. */
  delimiter?: string
  /** The names of the columns; undefined if the first row seems to hold data. */
  header?: readonly string[]
  /** The first rows without the header; none for JSON. */
  rows: readonly (readonly string[])[]
}

const DELIMITERS = [',', ';', '\t', '|'] as const

/** The form of a file that begins with `head`. `isWhole`: these are all bytes of the file. */
export async function formOf(head: Buffer, isWhole: boolean): Promise<FileForm> {
  const encoding = encodingOf(head, isWhole)
  const text = isWhole ? head : wholeLines(head)
  const start = (await textOf(text, encoding)).trimStart()
  if (start.startsWith('{') || start.startsWith('[')) return { type: jsonTypeOf(start), encoding, rows: [] }
  const stated = SEPARATOR.exec(start)?.[1]
  const delimiters = stated === undefined ? DELIMITERS : [stated]
  const tries = await Promise.all(delimiters.map(delimiter => split(text, encoding, delimiter)))
  const best = tries.reduce((one, other) => (scoreOf(other.rows) > scoreOf(one.rows) ? other : one))
  const [first = [], ...others] = best.rows
  const form = { type: 'delimited' as const, encoding, delimiter: best.delimiter }
  return isHeader(first) ? { ...form, header: first, rows: others } : { ...form, rows: best.rows }
}

function encodingOf(head: Buffer, isWhole: boolean): Encoding {
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) return 'utf-16'
  const sound = isWhole ? head : wholeLines(head)
  if (isUtf8(sound)) return 'utf-8'
  return sound.some(byte => byte >= 0x80 && byte <= 0x9f) ? 'windows-1252' : 'iso-8859-1'
}

async function textOf(head: Buffer, encoding: Encoding): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of toUtf8(once(head), encoding)) parts.push(part)
  return Buffer.concat(parts)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
}

/**
 * A first line that is a complete object without a list means NDJSON. Otherwise it is a JSON document: an array, or an
 * object of several lines.
 */
function jsonTypeOf(text: string): 'ndjson' | 'json' {
  const [line = ''] = text.split('\n', 1)
  try {
    const value: unknown = JSON.parse(line)
    const holdsList = typeof value === 'object' && value !== null && Object.values(value).some(Array.isArray)
    return line.startsWith('{') && !holdsList ? 'ndjson' : 'json'
  } catch {
    return 'json'
  }
}

const LF = 10

/**
 * The head without its last line, which may be cut off. If there is only one line, only a character that is cut off is
 * removed.
 */
function wholeLines(head: Buffer): Buffer {
  const end = head.lastIndexOf(LF)
  if (end < 0) return head.subarray(0, wholeCharacters(head))
  // In UTF-16 a zero byte stands next to a line feed, before or after it.
  return head.subarray(0, end + (head[end + 1] === 0 ? 2 : 1))
}

/** The length of the bytes without a UTF-8 character that is cut off at their end. */
function wholeCharacters(head: Buffer): number {
  for (let at = head.length - 1; at >= Math.max(0, head.length - 3); at--) {
    const byte = head[at] ?? 0
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return at + length > head.length ? at : head.length
  }
  return head.length
}

async function split(head: Buffer, encoding: Encoding, delimiter: string) {
  const dialect = { delimiter, quotes: 'doubled' as const }
  const rows: (readonly string[])[] = []
  const { bytes } = await takeSeparator(toUtf8(once(head), encoding))
  for await (const part of readCsv(bytes, { dialect })) {
    for (const { fields, rejected } of part) if (rejected === undefined) rows.push(fields)
  }
  return { delimiter, rows }
}

/** How well a delimiter fits: rows of equal width with many columns score high. */
function scoreOf(rows: readonly (readonly string[])[]): number {
  const width = rows[0]?.length ?? 0
  return width < 2 ? 0 : rows.length * width
}

/** Whether a row looks like a header: no cell has a long run of digits, and each cell that isn't empty has a letter. */
function isHeader(row: readonly string[]): boolean {
  return row.every(name => name === '' || (/\p{L}/u.test(name) && name.replace(/\D/g, '').length < 8))
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
