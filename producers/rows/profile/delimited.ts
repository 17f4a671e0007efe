// Reads the records of delimited text by a profile. csv.ts splits lines and quoted fields.
import { type CsvRow, readCsv, takeSeparator } from '../csv.ts'
import { FileError } from '../file-error.ts'
import { positionsOf } from './columns-of-file.ts'
import type { Delimited } from './format.ts'
import { frameOf, skipLines } from './frame.ts'
import { type FieldUse, type RawRecord, unreadable } from './records.ts'

export interface TableOptions {
  uses: readonly FieldUse[]
  /** Blanks around column names are ignored. */
  trim: boolean
  /** Names of columns that are never read. */
  drop: readonly string[]
}

export async function* readDelimited(
  bytes: AsyncIterable<Buffer>,
  format: Delimited,
  { uses, trim, drop }: TableOptions,
): AsyncGenerator<RawRecord[]> {
  const { header = 'exact', header_record: first, trailer_record: last, skip_lines: skipped = 0 } = format
  const frame = frameOf(first, last)
  const marks = [first, last].flatMap(record => (record === undefined ? [] : [record.mark]))
  const dialect = { delimiter: format.delimiter ?? ',', quotes: format.quotes ?? 'doubled' }
  let positions: number[] | undefined
  let width = 0
  const namesAt = (line: number | undefined, names: readonly string[]) =>
    positionsOf({ line, names, anyCase: header === 'any_case', trim, drop }, uses)

  const read = (row: CsvRow): RawRecord | undefined => {
    const { line, fields, rejected } = row
    const belongs = frame.admit({
      line,
      hasMark: mark => fields[0] === mark,
      count: at => countIn(fields, at === 'header' ? first?.count_field : last?.count_field),
    })
    if (!belongs) return undefined
    if (positions === undefined && header !== 'none') {
      if (rejected !== undefined) throw unreadableHeader(line)
      width = fields.length
      positions = namesAt(line, fields)
      return undefined
    }
    frame.countRow()
    if (rejected !== undefined) return unreadable(line, rejected)
    if (positions === undefined) {
      width = fields.length
      positions = namesAt(undefined, format.names ?? fields.map((_, index) => `#${index + 1}`))
    }
    if (fields.length !== width) return unreadable(line, 'row_fields')
    const values = positions.map(position => fields[position])
    return { line, element: undefined, item: undefined, values, rejected: undefined, childless: false }
  }

  const { bytes: lines, delimiter } = await takeSeparator(skipLines(bytes, skipped))
  if (delimiter !== undefined && delimiter !== dialect.delimiter) throw otherDelimiter(skipped + 1)
  const firstLine = skipped + (delimiter === undefined ? 1 : 2)
  const options = { dialect, firstLine, width: format.names?.length, marks }
  for await (const rows of readCsv(lines, options)) {
    const records: RawRecord[] = []
    for (const row of rows) {
      const record = read(row)
      if (record !== undefined) records.push(record)
    }
    yield records
  }
  frame.end()
}

function countIn(fields: readonly string[], at: number | undefined): string | undefined {
  return at === undefined ? undefined : (fields[at - 1] ?? '')
}

function otherDelimiter(line: number): FileError {
  const wrong = `Line ${line}: the file says that other characters than those of the profile separate its fields.`
  return new FileError('input', wrong, 'Set format.delimiter to the character after sep=.')
}

function unreadableHeader(line: number): FileError {
  const next = 'Check encoding, delimiter and quotes of the profile, or export the file again.'
  return new FileError('input', `Line ${line}: the first row can not be read.`, next)
}
