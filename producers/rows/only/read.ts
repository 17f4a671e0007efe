// Reads the file of `--only`: references or customers, one a line; CSV or NDJSON that has such columns; or a plan of
// `migrate diff`.
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { unguarded } from '../../../src/csv-text.ts'
import { isUtf16 } from '../../../src/edited-text.ts'
import { readCsv, SEPARATOR, takeSeparator } from '../csv.ts'
import { codeOf, FileError } from '../file-error.ts'
import { RFC_4180 } from '../quoted.ts'
import { type Entry, LISTED, type OnlyList, openList } from './list.ts'

/** A line of a plan, or of another NDJSON file; further members are left out. */
const Listed = z.object({
  reference: z.string().min(1).optional(),
  customer: z.string().min(1).optional(),
  account: z.string().min(1).optional(),
  change: z.string().optional(),
  line: z.int().optional(),
  item: z.string().optional(),
  /** The file whose line it is. */
  input_sha256: z.string().optional(),
})
type Listed = z.infer<typeof Listed>

const KEYS = ['reference', 'customer'] as const
type Key = (typeof KEYS)[number]
const HEAD_BYTES = 4096

/**
 * Reads the list. Throws a FileError if the file can't be read or lists nothing. A first line `reference` or `customer`
 * counts as a header.
 */
export async function readOnly(path: string): Promise<OnlyList> {
  const list = openList()
  let count = 0
  let inputSha256: string | undefined
  try {
    const head = await headOf(path)
    if (isOtherTable(head))
      throw new FileError(
        'usage',
        `The columns of ${path} are not separated by ${head.delimiter === ',' ? 'commas' : 'what sep= names'}.`,
        'Write the list as CSV with commas.',
      )
    for await (const { input_sha256: input, ...entry } of entriesOf(path, head)) {
      if (input !== undefined && inputSha256 !== undefined && input !== inputSha256)
        throw new FileError('usage', `${path} names lines of several files.`, 'Give the plan of one `migrate diff`.')
      inputSha256 ??= input
      list.add(entry)
      count += 1
    }
  } catch (error) {
    throw cannotRead(path, 'Give --only a text file.', error)
  }
  if (count === 0)
    throw new FileError('usage', `${path} names no reference.`, 'Write one reference or customer on each line.')
  return list.end(inputSha256)
}

type FoundEntry = Entry & Pick<Listed, 'input_sha256'>

function entriesOf(path: string, head: Head): AsyncIterable<FoundEntry> {
  const form = formOf(head)
  if (form === 'objects') return objects(path)
  if (form === 'table') return tableRows(path)
  return lines(
    path,
    KEYS.find(key => key === head.text),
    head.line,
  )
}

function formOf({ text, delimiter }: Head): 'objects' | 'table' | 'lines' {
  if (text.startsWith('{')) return 'objects'
  // A line in quotes is CSV, also where it is one column.
  return isHeader(text, delimiter) || text.startsWith('"') ? 'table' : 'lines'
}

const unquoted = (name: string) => name.replace(/^"(.*)"$/, '$1')

/** Whether the line names several columns, one of which can be listed. */
function isHeader(line: string, delimiter: string): boolean {
  const columns = line.split(delimiter).map(name => unquoted(name.trim()))
  return columns.length > 1 && KEYS.some(key => columns.includes(key))
}

/** Refused, because each line of such a table would count as a reference that no row has. */
const isOtherTable = ({ text, delimiter }: Head) =>
  [',', ';', '\t', '|'].some(other => other !== delimiter && isHeader(text, other))

/**
 * Reads a list of references, one a line, with or without the header `reference`, or a table in quotes with that column
 * alone. Any other form is refused, because lines of it would be passed over.
 */
export async function readReferences(path: string): Promise<ReadonlySet<string>> {
  const wanted = 'Give a text file with one id on each line.'
  const found = new Set<string>()
  try {
    const head = await headOf(path)
    const isOfIds = formOf(head) === 'lines' ? head.text !== 'customer' : unquoted(head.text) === 'reference'
    if (!isOfIds || isOtherTable(head)) throw new FileError('usage', `${path} is not a list of ids alone.`, wanted)
    for await (const { reference } of entriesOf(path, head)) if (reference !== undefined) found.add(reference)
    return found
  } catch (error) {
    throw cannotRead(path, wanted, error)
  }
}

function cannotRead(path: string, wanted: string, error: unknown): FileError {
  if (error instanceof FileError) return error
  return new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, wanted, error)
}

/** The first line that isn't `sep=;`, without a byte order mark and without blanks at its end. */
interface Head {
  text: string
  /** Its number, from 1. */
  line: number
  /** What `sep=` names, else a comma. */
  delimiter: string
}

async function headOf(path: string): Promise<Head> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const bytes = buffer.subarray(0, bytesRead)
    if (isUtf16(bytes)) throw new FileError('usage', `${path} is UTF-16.`, 'Save it as UTF-8 (in Excel: "CSV UTF-8").')
    const [first = '', second = ''] = withoutMark(bytes.toString('utf8')).split(/\r?\n/, 2)
    const [, delimiter] = SEPARATOR.exec(first) ?? []
    if (delimiter === undefined) return { text: first.trimEnd(), line: 1, delimiter: ',' }
    return { text: second.trimEnd(), line: 2, delimiter }
  } finally {
    await file.close()
  }
}

const withoutMark = (text: string) => text.replace(/^\uFEFF/, '')

async function* textLines(path: string): AsyncGenerator<{ text: string; line: number }> {
  let line = 0
  for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
    line += 1
    const own = line === 1 ? withoutMark(text) : text
    if (own.trim() !== '') yield { text: own, line }
  }
}

/** `header`: what the line `first` says that the others are; undefined if it is one of them. */
async function* lines(path: string, header: Key | undefined, first: number): AsyncGenerator<Entry> {
  for await (const { text, line } of textLines(path))
    if (line > first || (line === first && header === undefined)) yield { [header ?? 'reference']: text.trimEnd() }
}

async function* objects(path: string): AsyncGenerator<FoundEntry> {
  for await (const { text, line } of textLines(path)) {
    const listed = parse(text)
    if (!listed) throw notListed(path, line, 'Write {"reference": "…"} or {"customer": "…"} on each line.')
    // A row that isn't in the file any more.
    if (listed.change === 'removed') continue
    const { reference, customer, account, item, input_sha256 } = listed
    if (reference !== undefined || customer !== undefined) yield entryOf({ reference, customer, account })
    else if (listed.line !== undefined && input_sha256 !== undefined)
      yield { ...entryOf({ line: `${listed.line}`, item }), input_sha256 }
    else throw notListed(path, line, 'Write {"reference": "…"} or {"customer": "…"} on each line.')
  }
}

function parse(text: string): Listed | undefined {
  try {
    return Listed.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function* tableRows(path: string): AsyncGenerator<Entry> {
  let columns: readonly string[] | undefined
  const { bytes, delimiter = ',' } = await takeSeparator(createReadStream(path))
  for await (const rows of readCsv(bytes, { dialect: { ...RFC_4180, delimiter } })) {
    for (const { line, fields, rejected } of rows) {
      if (rejected !== undefined) throw notListed(path, line, 'Give each row the columns of the header.')
      if (columns === undefined) {
        columns = headerOf(
          path,
          fields.map(name => name.trim()),
        )
        continue
      }
      const isExact = isOurs(columns)
      const cellOf = (name: string) => {
        const text = fields[columns?.indexOf(name) ?? -1]
        return (isExact ? text : text?.trimEnd()) || undefined
      }
      const [given, customer, account] = [cellOf('reference'), cellOf('customer'), cellOf('account')]
      if (given === undefined && customer === undefined)
        throw notListed(path, line, 'Take the line out, or give it a reference or a customer.')
      yield entryOf({ reference: given, customer, account })
      const reference = given !== undefined && isExact ? unguarded(given) : given
      if (reference !== given) yield entryOf({ reference, customer, account })
    }
  }
}

/** Throws a FileError if no column can be listed. */
function headerOf(path: string, columns: readonly string[]): readonly string[] {
  if (KEYS.some(key => columns.includes(key))) return columns
  const next = 'Give it a header of these names, or write it without quotes.'
  throw new FileError('usage', `${path} is a table without a column reference or customer.`, next)
}

/** Whether it is a file that `migrate` wrote: those guard texts that a spreadsheet would take for a formula. */
function isOurs(columns: readonly string[]): boolean {
  return ['line', 'reference', 'outcome', 'reason'].every(name => columns.includes(name))
}

function entryOf(given: { [name in keyof Entry]: Entry[name] | undefined }): Entry {
  const entry: Entry = {}
  for (const name of LISTED) {
    const value = given[name]
    if (value !== undefined) entry[name] = value
  }
  return entry
}

function notListed(path: string, line: number, next: string): FileError {
  return new FileError('usage', `${path}: line ${line} names no reference and no customer.`, next)
}
