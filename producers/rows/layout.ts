// Finds out which column each name in a file's header means, by the options `--map`, `--ignore-unknown` and `--echo`. A
// message names line and column. It quotes a name only where the name can't be card data: a file without a header has a
// card in its first row.
import { z } from 'zod'
import { COLUMN_NAMES, COLUMNS, type ColumnName, isColumnOf, NEEDED, type RecordKind } from './columns.ts'
import { FileError } from './file-error.ts'

/** `--map`: a name in the file's header → a column of COLUMNS, or null to leave the column out. */
export const ColumnMap = z.record(z.string(), z.union([z.string(), z.null()]))
export type ColumnMap = z.infer<typeof ColumnMap>

export interface ColumnOptions {
  recordKind: RecordKind
  map?: ColumnMap | undefined
  ignoreUnknown?: boolean | undefined
  /** Names of the file's columns, in the order in which the results repeat them. */
  echo?: readonly string[] | undefined
}

/** The position of each column among the cells of a row, -1 for a column that isn't there. */
export interface Layout {
  recordKind: RecordKind
  at: Readonly<Record<ColumnName, number>>
  echo: readonly number[]
}

const CODES = /^c[vs][cv]2?$|^cid$|security.?code/i

export function parseMap(name: string, text: string): ColumnMap {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new FileError('usage', `${name} is not JSON.`, 'Write it as {"name in the file": "column"}.', error)
  }
  const map = ColumnMap.safeParse(value)
  if (map.success) return map.data
  throw new FileError('usage', `${name} is no column map.`, 'Write it as {"name in the file": "column"}.', map.error)
}

/** Refuses options that can't fit any file. Call it before a file is read. */
export function checkColumns({ recordKind, map = {}, echo = [] }: ColumnOptions): void {
  const taken = new Set<string>()
  for (const [name, column] of Object.entries(map)) {
    if (column === null) continue
    if (!isColumnOf(recordKind, column)) {
      const next = `Columns of ${recordKind}: ${namesOf(recordKind)}.`
      throw new FileError('usage', `--map gives ${shown(name)} the unknown name ${shown(column)}.`, next)
    }
    if (taken.has(column)) {
      throw new FileError('usage', `--map gives two columns the name ${column}.`, 'Set one of them to null.')
    }
    taken.add(column)
  }
  for (const name of echo) {
    const column = map[name] === undefined ? name : map[name]
    const card = column !== null && Object.hasOwn(COLUMNS, column) && COLUMNS[column as ColumnName].card
    if (card || CODES.test(name)) {
      throw new FileError('usage', `--echo ${shown(name)} would put card data into the results.`, 'Leave it out.')
    }
  }
  const twice = echo.find((name, index) => echo.indexOf(name) !== index)
  if (twice !== undefined) throw new FileError('usage', `--echo names ${shown(twice)} twice.`, 'Name it once.')
}

/**
 * The column that a name in a file's header means; null where the column is left out, undefined where the name is
 * unknown.
 */
export function resolve(name: string, { recordKind, map = {}, ignoreUnknown = false }: ColumnOptions) {
  if (Object.hasOwn(map, name)) return map[name] as ColumnName | null
  if (isColumnOf(recordKind, name)) return name
  return ignoreUnknown ? null : undefined
}

/** The layout of a file whose header stands at physical line `line`. */
export function layoutOf(header: readonly string[], line: number, options: ColumnOptions): Layout {
  checkColumns(options)
  refuseHeaderless(header, line)
  refuseOneColumn(header, line)
  const { map = {}, echo = [], recordKind } = options
  const at = absent()
  const seen = new Map<string, number>()
  for (const [index, name] of header.entries()) {
    const place = `Line ${line}, column ${index + 1}`
    const before = seen.get(name)
    if (before !== undefined && name !== '') {
      throw new FileError('usage', `${place}: ${shown(name)} stands in column ${before + 1} too.`, 'Rename one.')
    }
    seen.set(name, index)
    const column = resolve(name, options)
    if (column === undefined) throw new FileError('usage', `${place}: unknown column ${shown(name)}.`, hint(name))
    if (column === null) continue
    if (at[column] >= 0) {
      throw new FileError('usage', `${place}: a second column for ${column}.`, 'Set one of them to null in --map.')
    }
    at[column] = index
  }
  for (const [name, column] of Object.entries(map)) {
    if (column !== null && !seen.has(name)) {
      throw new FileError('usage', `Line ${line}: no column ${shown(name)}, which --map names.`, 'Check --map.')
    }
  }
  for (const name of echo) {
    if (!seen.has(name))
      throw new FileError('usage', `Line ${line}: no column ${shown(name)} to echo.`, 'Check --echo.')
  }
  refuseIncomplete(at, line, recordKind)
  return { recordKind, at, echo: echo.map(name => seen.get(name) as number) }
}

export function absent(): Record<ColumnName, number> {
  return Object.fromEntries(COLUMN_NAMES.map(name => [name, -1])) as Record<ColumnName, number>
}

function refuseIncomplete(at: Record<ColumnName, number>, line: number, kind: RecordKind): void {
  const has = (name: ColumnName) => at[name] >= 0
  const wrong = (what: string) => {
    throw new FileError('usage', `Line ${line}: ${what}.`, 'Add the column, or name it with --map FILE.')
  }
  for (const names of NEEDED[kind]) if (!names.some(has)) wrong(`no column ${names.join(' or ')}`)
  if (has('encrypted_card') && !has('public_key_alias')) wrong('encrypted_card without a column public_key_alias')
  if (has('expiry_month') !== has('expiry_year')) wrong('the file has only one of expiry_month and expiry_year')
  if (has('expiry') && has('expiry_month')) {
    const next = 'Set one of them to null in --map.'
    throw new FileError('usage', `Line ${line}: expiry stands beside expiry_month and expiry_year.`, next)
  }
  if (has('card_number') && !has('expiry') && !has('expiry_month')) {
    wrong('card_number without expiry_month and expiry_year, or expiry')
  }
}

function refuseHeaderless(header: readonly string[], line: number): void {
  if (!header.some(looksLikeData)) return
  const next = 'Put a line with the names of the columns first.'
  throw new FileError('usage', `Line ${line} holds data, not the names of columns.`, next)
}

function looksLikeData(name: string): boolean {
  return name.replace(/\D/g, '').length >= 8
}

const DELIMITERS = [
  { found: ';', next: 'Separate the columns by commas, not by semicolons.' },
  { found: '\t', next: 'Separate the columns by commas, not by tabs.' },
  { found: '\r', next: 'End the lines with LF or CRLF, not with a bare CR.' },
] as const

/** A header that is one column only because it is separated otherwise. */
function refuseOneColumn(header: readonly string[], line: number): void {
  const [name = '', ...others] = header
  const delimiter = others.length === 0 && DELIMITERS.find(({ found }) => name.includes(found))
  if (delimiter) throw new FileError('usage', `Line ${line}, column 1: unknown column ${shown(name)}.`, delimiter.next)
}

function hint(name: string): string {
  if (CODES.test(name)) return 'Security codes must not be kept: map it to null, or better, take it out of the file.'
  const near = COLUMN_NAMES.find(column => column === name.trim().toLowerCase().replace(/[ -]/g, '_'))
  if (near !== undefined) return `Write it ${near}, or name it with --map FILE.`
  return 'Name it with --map FILE, or drop such columns with --ignore-unknown.'
}

/** A name as a message may show it. */
export function shown(name: string): string {
  if (name === '') return '"" (an empty name)'
  if (name.length > 64 || looksLikeData(name)) return '(a name not shown here)'
  return JSON.stringify(name)
}

function namesOf(kind: RecordKind): string {
  return COLUMN_NAMES.filter(name => isColumnOf(kind, name)).join(', ')
}
