// The parts of a text file around its rows: lines to skip, a header record, and a trailer record with a stated count. A
// missing trailer shows that the end of the file is lost.
import { FileError } from '../file-error.ts'

/** Skips the first `count` lines. */
export async function* skipLines(bytes: AsyncIterable<Buffer>, count = 0): AsyncGenerator<Buffer> {
  let left = count
  for await (const chunk of bytes) {
    let at = 0
    while (left > 0 && at < chunk.length) {
      const end = chunk.indexOf(10, at)
      at = end < 0 ? chunk.length : end + 1
      if (end >= 0) left--
    }
    if (at < chunk.length) yield at === 0 ? chunk : chunk.subarray(at)
  }
}

interface MarkedRecord {
  mark: string
  counts?: 'rows' | 'records' | undefined
}

/** A record of the file, as the frame checks it. */
export interface Seen {
  line: number
  hasMark(mark: string): boolean
  /** The text of the stated count; undefined if the profile names no place for one. */
  count(at: 'header' | 'trailer'): string | undefined
}

export interface Frame {
  /** True for a record that is a row or names the columns, false for a header or trailer record. */
  admit(seen: Seen): boolean
  countRow(): void
  /** Call it once, after the last record. */
  end(): void
}

interface StatedCount {
  line: number
  text: string
  counts: MarkedRecord['counts']
}

/** Makes the checks. They throw a FileError if the file lacks the declared records, or if a stated count is wrong. */
export function frameOf(header: MarkedRecord | undefined, trailer: MarkedRecord | undefined): Frame {
  let rows = 0
  let begun = header === undefined
  let ended: { line: number } | undefined
  const stated: StatedCount[] = []
  const state = (seen: Seen, at: 'header' | 'trailer', counts: MarkedRecord['counts']) => {
    const text = seen.count(at)
    if (text !== undefined) stated.push({ line: seen.line, text, counts })
  }

  const admit = (seen: Seen): boolean => {
    if (ended) throw broken(`Line ${seen.line}: the trailer record at line ${ended.line} is not the last record`)
    if (!begun && header !== undefined) {
      if (!seen.hasMark(header.mark)) throw broken(`Line ${seen.line}: the header record is missing`)
      begun = true
      state(seen, 'header', header.counts)
      return false
    }
    if (trailer === undefined || !seen.hasMark(trailer.mark)) return true
    ended = { line: seen.line }
    state(seen, 'trailer', trailer.counts)
    return false
  }
  const end = () => {
    if (!begun) throw broken('The header record is missing')
    if (trailer !== undefined && !ended) throw broken('The trailer record is missing: the file may have lost its end')
    const others = (header === undefined ? 0 : 1) + (trailer === undefined ? 0 : 1)
    for (const one of stated) checkCount(one, one.counts === 'records' ? rows + others : rows)
  }
  return { admit, countRow: () => void rows++, end }
}

function checkCount({ line, text, counts = 'rows' }: StatedCount, expected: number): void {
  if (!/^\d{1,15}$/.test(text.trim())) throw broken(`Line ${line}: the stated number of records is no number`)
  if (Number(text) === expected) return
  throw broken(`Line ${line} states ${Number(text)} ${counts}, and the file has ${expected}`)
}

function broken(wrong: string): FileError {
  return new FileError('input', `${wrong}.`, 'Get the file again, or correct the profile.')
}
