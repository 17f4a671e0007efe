// Finds out which column each name in a file's header means, by the options `--map`, `--ignore-unknown` and `--echo`. A
// message names line and column. It quotes a name only if the name can't be card data: the first row of a file without
// a header holds a card.
import { z } from 'zod'
import { cleanJson } from '../../src/clean-text.ts'
import { COLUMN_NAMES, COLUMNS, type ColumnName, isColumnOf, NEEDED, type RecordKind } from './columns.ts'
import { FileError } from './file-error.ts'
import type { KeptField } from './kept.ts'
import { isSecurityCode } from './security-code.ts'
import { type ReadTime, readIso } from './time-form.ts'

/** `--map`: a name in the file's header → a column of COLUMNS, or null to leave the column out. */
export const ColumnMap = z.record(z.string(), z.union([z.string(), z.null()]))
export type ColumnMap = z.infer<typeof ColumnMap>

export interface ColumnOptions {
  recordKind: RecordKind
  map?: ColumnMap | undefined
  ignoreUnknown?: boolean | undefined
  /** The names of the columns that the results repeat, in that order. */
  echo?: readonly string[] | undefined
  /** The file's columns whose texts each row keeps. */
  keep?: readonly KeptField[] | undefined
  /** The file's column that says when each row's data was given. */
  timeColumn?: string | undefined
  /** Records that can stand in columns are read as such, without their JSON. */
  inColumns?: boolean | undefined
}

/** The position of each column among the cells of a row, -1 for a column that isn't there. */
export interface Layout {
  recordKind: RecordKind
  at: Readonly<Record<ColumnName, number>>
  echo: readonly number[]
  /** -1 for a column that isn't there; undefined if nothing is kept. */
  keep?: readonly number[] | undefined
  /** Where each row says when its data was given, and how that is read. */
  sourceTime?: { at: number; read: ReadTime } | undefined
  /** A profile made the cells, and judged what a spreadsheet may have changed. */
  isProfiled?: boolean | undefined
  /** As in `ColumnOptions`. */
  inColumns?: boolean | undefined
}

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
    if (isSecurityCode(name)) {
      throw new FileError('usage', `--map reads ${shown(name)}, a security code.`, 'Set it to null.')
    }
    if (!isColumnOf(recordKind, column)) {
      const wrong = `--map gives ${shown(name)} the unknown name ${shown(column)}.`
      throw new FileError('usage', wrong, columnsOf(recordKind))
    }
    if (taken.has(column)) {
      throw new FileError('usage', `--map gives two columns the name ${column}.`, 'Set one of them to null.')
    }
    taken.add(column)
  }
  for (const name of echo) {
    const column = map[name] === undefined ? name : map[name]
    const card = column !== null && Object.hasOwn(COLUMNS, column) && COLUMNS[column as ColumnName].card
    if (card || isSecurityCode(name)) {
      throw new FileError('usage', `--echo ${shown(name)} would put card data into the results.`, 'Leave it out.')
    }
  }
  const twice = echo.find((name, index) => echo.indexOf(name) !== index)
  if (twice !== undefined) throw new FileError('usage', `--echo names ${shown(twice)} twice.`, 'Name it once.')
}

/**
 * The column that a name in a file's header means; null if the column is left out, undefined if the name is unknown.
 */
export function resolve(name: string, { recordKind, map = {}, ignoreUnknown = false, timeColumn }: ColumnOptions) {
  if (Object.hasOwn(map, name)) return map[name] as ColumnName | null
  if (isColumnOf(recordKind, name)) return name
  return ignoreUnknown || name === timeColumn ? null : undefined
}

/**
 * The layout of a file whose header stands at physical line `line`. Throws a FileError that names everything that is wrong
 * with the header.
 */
export function layoutOf(header: readonly string[], line: number, options: ColumnOptions): Layout {
  checkColumns(options)
  refuseHeaderless(header, line)
  refuseOneColumn(header, line)
  const { recordKind, echo = [] } = options
  const { at, seen, near, wrong } = readNames(header, options)
  wrong.push(
    ...wrongOfOptions(header, seen, options),
    ...wrongOfColumns(name => at[name] >= 0 || near.has(name), recordKind),
  )
  if (wrong.length > 0) throw unusable(line, wrong, recordKind)
  const keep = options.keep?.map(({ field }) => seen.get(field) ?? -1)
  const timeAt = options.timeColumn === undefined ? undefined : seen.get(options.timeColumn)
  const sourceTime = timeAt === undefined ? undefined : { at: timeAt, read: readIso }
  return { recordKind, at, echo: echo.map(name => seen.get(name) as number), keep, sourceTime }
}

/** What is wrong, and what to do about it. */
interface Wrong {
  what: string
  next: string
}

const WRONG_MAX = 10

/** `Line 1, column 3: …; column 5: …. What to do. The columns that exist.` */
function unusable(line: number, wrong: readonly Wrong[], kind: RecordKind): FileError {
  const told = wrong.slice(0, WRONG_MAX).map(({ what }) => what)
  if (wrong.length > WRONG_MAX) told.push(`${wrong.length - WRONG_MAX} more errors`)
  const place = told[0]?.startsWith('column ') ? `Line ${line}, ` : `Line ${line}: `
  const next = [...new Set(wrong.map(one => one.next))].join(' ')
  return new FileError('usage', `${place}${told.join('; ')}.`, `${next} ${columnsOf(kind)}`)
}

interface ReadNames {
  at: Record<ColumnName, number>
  /** Name in the file → its position. */
  seen: Map<string, number>
  /** Columns that the header has in other letter case. They are reported as such, and not as missing, too. */
  near: Set<ColumnName>
  wrong: Wrong[]
}

function readNames(header: readonly string[], options: ColumnOptions): ReadNames {
  const at = absent()
  const seen = new Map<string, number>()
  const near = new Set<ColumnName>()
  const wrong: Wrong[] = []
  for (const [index, name] of header.entries()) {
    const place = `column ${index + 1}`
    const before = seen.get(name)
    if (before !== undefined && name !== '') {
      wrong.push({ what: `${place}: ${shown(name)} stands in column ${before + 1} too`, next: 'Rename one.' })
      continue
    }
    seen.set(name, index)
    const column = resolve(name, options)
    if (column === undefined) {
      wrong.push({ what: `${place}: unknown column ${shown(name)}`, next: hint(name) })
      const other = nearTo(name)
      if (other) near.add(other)
    } else if (column !== null && at[column] >= 0)
      wrong.push({ what: `${place}: a second column for ${column}`, next: 'Set one of them to null in --map.' })
    else if (column !== null) at[column] = index
  }
  return { at, seen, near, wrong }
}

/** Names in `--map` and `--echo` that the file doesn't have. */
function wrongOfOptions(header: readonly string[], seen: Map<string, number>, options: ColumnOptions): Wrong[] {
  const { map = {}, echo = [], timeColumn } = options
  const has = `The file has ${header.slice(0, NAMES_MAX).map(shown).join(', ')}${header.length > NAMES_MAX ? ', …' : ''}.`
  const mapped = Object.entries(map).filter(([name, column]) => column !== null && !seen.has(name))
  return [
    ...mapped.map(([name]) => ({ what: `no column ${shown(name)}, which --map names`, next: `Check --map. ${has}` })),
    ...echo
      .filter(name => !seen.has(name))
      .map(name => ({ what: `no column ${shown(name)} to echo`, next: `Check --echo. ${has}` })),
    ...(timeColumn === undefined || seen.has(timeColumn)
      ? []
      : [{ what: `no column ${shown(timeColumn)}, which --source-time names`, next: `Check --source-time. ${has}` }]),
  ]
}
const NAMES_MAX = 40

export function absent(): Record<ColumnName, number> {
  return Object.fromEntries(COLUMN_NAMES.map(name => [name, -1])) as Record<ColumnName, number>
}

function wrongOfColumns(has: (name: ColumnName) => boolean, kind: RecordKind): Wrong[] {
  const missing: string[] = NEEDED[kind]
    .filter(names => !names.some(has))
    .map(names => `no column ${names.join(' or ')}`)
  if (has('encrypted_card') && !has('public_key_alias'))
    missing.push('encrypted_card without a column public_key_alias')
  if (has('expiry_month') !== has('expiry_year')) missing.push('the file has only one of expiry_month and expiry_year')
  if (has('card_number') && !has('expiry') && !has('expiry_month') && !has('expiry_year'))
    missing.push('card_number without expiry_month and expiry_year, or expiry')
  const wrong = missing.map(what => ({ what, next: 'Add the column, or name it with --map FILE.' }))
  if (has('expiry') && has('expiry_month'))
    wrong.push({ what: 'expiry stands beside expiry_month and expiry_year', next: 'Set one of them to null in --map.' })
  return wrong
}

function refuseHeaderless(header: readonly string[], line: number): void {
  if (!header.some(looksLikeData)) return
  const next = 'Put a line with the names of the columns first.'
  throw new FileError('usage', `Line ${line} holds data, not the names of columns.`, next)
}

export function looksLikeData(name: string): boolean {
  return name.replace(/\D/g, '').length >= 8
}

const DELIMITERS = [
  { found: ';', next: 'Separate the columns by commas, not by semicolons.' },
  { found: '\t', next: 'Separate the columns by commas, not by tabs.' },
  { found: '\r', next: 'End the lines with LF or CRLF, not with a bare CR.' },
] as const

/** Throws for a header that seems to be one column only because its separator isn't a comma. */
function refuseOneColumn(header: readonly string[], line: number): void {
  const [name = '', ...others] = header
  const delimiter = others.length === 0 && DELIMITERS.find(({ found }) => name.includes(found))
  if (delimiter) throw new FileError('usage', `Line ${line}, column 1: unknown column ${shown(name)}.`, delimiter.next)
}

function hint(name: string): string {
  if (isSecurityCode(name))
    return 'Security codes must not be kept: map it to null, or better, take it out of the file.'
  const near = nearTo(name)
  if (near !== undefined) return `Write it ${near}, or name it with --map FILE.`
  return 'Name it with --map FILE, or drop such columns with --ignore-unknown.'
}

/** The column with this name in other letter case. */
function nearTo(name: string): ColumnName | undefined {
  return COLUMN_NAMES.find(column => column === name.trim().toLowerCase().replace(/[ -]/g, '_'))
}

/** A name as a message may show it. */
export function shown(name: string): string {
  if (name === '') return '"" (an empty name)'
  if (name.length > 64 || looksLikeData(name)) return '(a name not shown here)'
  return cleanJson(JSON.stringify(name))
}

export function columnsOf(kind: RecordKind): string {
  return `Columns of ${kind}: ${COLUMN_NAMES.filter(name => isColumnOf(kind, name)).join(', ')}.`
}

/** The text of a row in a column; '' for a cell that the row doesn't have. */
export function cell(cells: readonly string[], layout: Layout, name: ColumnName): string {
  const index = layout.at[name]
  return index < 0 ? '' : (cells[index] ?? '')
}
