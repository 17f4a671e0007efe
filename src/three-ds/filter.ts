// Parses the query of a list: `f=v` equal, `f!=v` not equal, `f>=v` and `f<=v` bounds, `f~=v` pattern; also `_limit`,
// `_skip`, `_sort`. A repeated filter means OR; a repeated `!=` means none of the values. Different parameters are
// combined by AND. The store runs the query.
import type { Reason } from '../errors.ts'
import { isPrintable, uuid } from '../job/envelope/text.ts'
import { parseReuseToken } from '../token/token.ts'
import { FIELDS, type FieldKind, type FieldName, fieldOf, type Operator, TAKES } from './fields.ts'
import { type Problem, problem } from './problem.ts'

export const PAGE = { least: 1, most: 10_000, default: 2_000 } as const
export const SKIP_MAX = 1_000_000
export const PARAMETERS_MAX = 64
export const VALUE_LENGTH_MAX = 256
/** The most `*` in one pattern. */
const STARS_MAX = 4

export interface Condition {
  field: FieldName
  operator: Operator
  /**
   * The values of which one must match. UUIDs are in lower case; amounts and times (ms since the epoch) are numbers.
   */
  values: (string | number)[]
}

interface Sort {
  field: FieldName
  descending: boolean
}

export interface Search {
  conditions: Condition[]
  /** The first field orders first; never empty. */
  sort: Sort[]
  limit: number
  skip: number
}

/** Newest first. */
const SORT: Sort = { field: 'created_at', descending: true }

/** Parses a query. `parameters`: decoded names and values, in the order of the query. */
export function parseSearch(parameters: Iterable<readonly [string, string]>): Search | Problem {
  const wrong: Problem['details'] = []
  const search: Search = { conditions: [], sort: [], limit: PAGE.default, skip: 0 }
  const seen = new Set<string>()
  let count = 0
  for (const [name, value] of parameters) {
    if (++count > PARAMETERS_MAX) return problem(102, { field: 'query', reason: 'field_length' })
    const reason =
      name.startsWith('_') && name !== '_id' && !/^_id[!~<>]?$/.test(name)
        ? readPage(search, name, value, seen)
        : readCondition(search, name, value)
    if (reason !== undefined) wrong.push({ field: `query.${plain(name)}`, reason })
  }
  if (wrong.length > 0) return problem(102, ...wrong)
  return search.sort.length > 0 ? search : { ...search, sort: [SORT] }
}

function readPage(search: Search, name: string, value: string, seen: Set<string>): Reason | undefined {
  if (name === '_sort') return readSort(search, value)
  if (seen.has(name)) return 'field_conflict'
  seen.add(name)
  if (name === '_limit') {
    const limit = wholeNumber(value)
    if (limit === undefined) return 'field_format'
    search.limit = limit
    return limit < PAGE.least || limit > PAGE.most ? 'field_range' : undefined
  }
  if (name === '_skip') {
    const skip = wholeNumber(value)
    if (skip === undefined) return 'field_format'
    search.skip = skip
    return skip > SKIP_MAX ? 'field_range' : undefined
  }
  return 'field_unknown'
}

function readSort({ sort }: Search, value: string): Reason | undefined {
  const descending = value.startsWith('-')
  const field = descending ? value.slice(1) : value
  if (!FIELDS.has(field)) return 'field_value'
  if (sort.some(one => one.field === field)) return 'field_conflict'
  sort.push({ field: field as FieldName, descending })
  return undefined
}

/**
 * Reads one condition. The first character of the operator is still at the end of the name: the parameter `amount>`
 * with the value `5` is `amount>=5`.
 */
function readCondition(search: Search, name: string, text: string): Reason | undefined {
  const sign = /[!<>~]$/.exec(name)?.[0] ?? ''
  const operator = `${sign}=` as Operator
  const field = name.slice(0, name.length - sign.length)
  if (!FIELDS.has(field)) return 'field_unknown'
  const { kind } = fieldOf(field as FieldName)
  if (!(TAKES[kind] as readonly Operator[]).includes(operator)) return 'not_applicable'
  if (text.length > VALUE_LENGTH_MAX) return 'field_length'
  if (!isPrintable(text)) return 'field_characters'
  if (operator === '~=' && text.split('*').length - 1 > STARS_MAX) return 'field_range'
  const value = READS[kind](text)
  if (value === undefined) return 'field_format'
  const known = search.conditions.find(one => one.field === field && one.operator === operator)
  if (known) known.values.push(value)
  else search.conditions.push({ field: field as FieldName, operator, values: [value] })
  return undefined
}

const READS = {
  uuid: text => uuid().safeParse(text).data,
  token: text => parseReuseToken(text),
  amount: wholeNumber,
  moment: readMoment,
  text: text => text,
} as const satisfies Record<FieldKind, (text: string) => string | number | undefined>

function wholeNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

const MOMENT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

/**
 * Reads an RFC 3339 time, or a date, which means midnight UTC; ms since the epoch. In a query an unescaped `+` has
 * become a space.
 */
function readMoment(text: string): number | undefined {
  const moment = text.replace(/ (?=\d\d:\d\d$)/, '+')
  const ms = MOMENT.test(moment) ? Date.parse(moment) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

function plain(name: string): string {
  return /^[A-Za-z_.0-9]{1,64}[!<>~]?$/.test(name) && !/\d{6}/.test(name) ? name : '(unnamed)'
}

/**
 * A pattern for LIKE that matches anywhere in the text: `*` stands for any characters, every other character for
 * itself.
 */
export function likePattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')}%`
}
