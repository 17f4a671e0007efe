// Reads the records of fixed-width text by a profile. Positions count characters of the decoded text, not bytes.
import { isUtf8 } from 'node:buffer'
import { readLines } from '../lines.ts'
import { positionsOf } from './columns-of-file.ts'
import type { Fixed } from './format.ts'
import { frameOf, skipLines } from './frame.ts'
import { type FieldUse, type RawRecord, unreadable } from './records.ts'

const LF = 10
const CR = 13

export async function* readFixed(
  bytes: AsyncIterable<Buffer>,
  format: Fixed,
  { uses, drop }: { uses: readonly FieldUse[]; drop: readonly string[] },
): AsyncGenerator<RawRecord[]> {
  const { columns, header_record: first, trailer_record: last, skip_lines: skipped = 0 } = format
  const names = columns.map(({ name }) => name)
  const places = positionsOf({ line: undefined, names, anyCase: false, trim: false, drop }, uses).map(at => columns[at])
  const frame = frameOf(first, last)
  let line = skipped

  const readLine = (text: string): RawRecord | undefined => {
    const belongs = frame.admit({
      line,
      hasMark: mark => text.startsWith(mark),
      count: at => {
        const { count_start: start, count_length: length } = (at === 'header' ? first : last) ?? {}
        return start === undefined || length === undefined ? undefined : cut(text, start, length)
      },
    })
    if (!belongs) return undefined
    frame.countRow()
    const characters = isOneUnitEach(text) ? text : [...text]
    const missing = format.length - characters.length
    if (missing < 0 || (missing > 0 && !format.pad_short)) return unreadable(line, 'row_fields')
    const values = places.map(place => (place === undefined ? '' : cut(characters, place.start, place.length)))
    return { line, element: undefined, item: undefined, values, rejected: undefined, childless: false }
  }
  const readBytes = (part: Buffer): RawRecord | undefined => {
    line += 1
    const end = part.length - (part[part.length - 1] === CR ? 1 : 0)
    if (end === 0) return undefined
    const content = part.subarray(0, end)
    const wrong = content.includes(0) ? 'row_nul' : isUtf8(content) ? undefined : 'row_utf8'
    if (wrong === undefined) return readLine(content.toString('utf8'))
    return reject(wrong)
  }
  const reject = (reason: 'row_nul' | 'row_utf8' | 'row_too_long'): RawRecord | undefined => {
    if (!frame.admit({ line, hasMark: () => false, count: () => undefined })) return undefined
    frame.countRow()
    return unreadable(line, reason)
  }

  for await (const { bytes: block, tooLong } of readLines(skipLines(bytes, skipped), () => line)) {
    const records: (RawRecord | undefined)[] = []
    if (tooLong) {
      line += 1
      records.push(reject('row_too_long'))
    }
    for (let start = 0; start < block.length; ) {
      const next = block.indexOf(LF, start) + 1 || block.length + 1
      records.push(readBytes(block.subarray(start, next - 1)))
      start = next
    }
    yield records.filter(record => record !== undefined)
  }
  frame.end()
}

function isOneUnitEach(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text)
}

/** The characters of one field, without the blanks that pad it. */
function cut(characters: string | readonly string[], start: number, length: number): string {
  const part = characters.slice(start - 1, start - 1 + length)
  return (typeof part === 'string' ? part : part.join('')).replace(/^ +| +$/g, '')
}
