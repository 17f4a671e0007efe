// Parses RSQL. `;`, `&` and `and` bind tighter than `,` and `or`; a comparison is a field, an operator and one value or
// a list of values. The parser is our own, because the known library reports no positions and accepts unknown operators
// (docs/decisions/own-implementations.md, RSQL). compile.ts checks the fields.
import { isParseError, LOST_PLUS, type ParseError, parseError } from './parse-error.ts'
import { hasLostPlus } from './time-span.ts'

/** The limits of an expression. `depthMax` counts nested parentheses, `termsMax` comparisons. */
export const RSQL = { charactersMax: 2_048, depthMax: 16, termsMax: 64, listMax: 100 } as const

const OPERATORS = ['==', '!=', '<', '<=', '>', '>=', '=in=', '=out=', '=regex='] as const
export type Operator = (typeof OPERATORS)[number]

export interface Term {
  field: string
  operator: Operator
  values: { text: string; at: number }[]
  /** The values were written in parentheses, as a list. */
  listed: boolean
  at: number
  operatorAt: number
}
export type Expression = Term | { all: Expression[] } | { any: Expression[] }

const SPELLINGS: ReadonlyMap<string, Operator> = new Map([
  ...OPERATORS.map(operator => [operator, operator] as const),
  ['=lt=', '<'],
  ['=le=', '<='],
  ['=gt=', '>'],
  ['=ge=', '>='],
])

const BARE = /[^"'();&,=!~<>\s]+/y
const OPERATOR = /=[A-Za-z]*=|!=|[<>]=?/y
const SPACES = / */y
const WORD = /(and|or)(?= |\()/iy

/** Parses `text`. Returns a ParseError for a wrong expression; never throws. */
export function parse(text: string): Expression | ParseError {
  if (text.length > RSQL.charactersMax) {
    return parseError(`more than ${RSQL.charactersMax} characters`, RSQL.charactersMax)
  }
  const broken = text.isWellFormed() ? text.search(/\p{Cc}/u) : 0
  if (broken >= 0) return parseError('a control character or half a character', broken)
  let at = 0
  let terms = 0

  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  /** If a connective (`and`, `or`) in one of its spellings is here, moves past it and returns true. */
  const takes = (signs: ',' | ';&', word: 'and' | 'or'): boolean => {
    const start = at
    const spaces = take(SPACES) ?? ''
    if (at < text.length && signs.includes(text[at] as string)) {
      at += 1
      take(SPACES)
      return true
    }
    const apart = spaces !== '' || text[start - 1] === ')'
    if (apart && take(WORD)?.toLowerCase() === word) {
      take(SPACES)
      return true
    }
    at = start
    return false
  }
  const chain = (
    part: (depth: number) => Expression | ParseError,
    depth: number,
    more: () => boolean,
  ): Expression[] | ParseError => {
    const parts: Expression[] = []
    do {
      const next = part(depth)
      if (isParseError(next)) return next
      parts.push(next)
    } while (more())
    return parts
  }
  const any = (depth: number): Expression | ParseError => {
    const parts = chain(all, depth, () => takes(',', 'or'))
    return isParseError(parts) ? parts : (only(parts) ?? { any: parts })
  }
  const all = (depth: number): Expression | ParseError => {
    const parts = chain(constraint, depth, () => takes(';&', 'and'))
    return isParseError(parts) ? parts : (only(parts) ?? { all: parts })
  }
  const constraint = (depth: number): Expression | ParseError => {
    if (text[at] !== '(') return comparison()
    if (depth === RSQL.depthMax) return parseError(`parentheses deeper than ${RSQL.depthMax}`, at)
    at += 1
    take(SPACES)
    const inner = any(depth + 1)
    if (isParseError(inner)) return inner
    take(SPACES)
    if (text[at] !== ')') return parseError('a closing parenthesis or a connective is missing', at)
    at += 1
    return inner
  }
  const comparison = (): Term | ParseError => {
    const start = at
    const field = take(BARE)
    if (field === undefined) return parseError('the name of a field is missing', start)
    terms += 1
    if (terms > RSQL.termsMax) return parseError(`more than ${RSQL.termsMax} comparisons`, start)
    take(SPACES)
    const operatorAt = at
    const spelt = take(OPERATOR)
    if (spelt === undefined) return parseError('an operator is missing', operatorAt)
    const operator = SPELLINGS.get(spelt)
    if (operator === undefined) return parseError('this operator is not known', operatorAt)
    take(SPACES)
    const listed = text[at] === '('
    const values = listed ? list() : value()
    if (isParseError(values)) return values
    return { field, operator, values: Array.isArray(values) ? values : [values], listed, at: start, operatorAt }
  }
  const list = (): Term['values'] | ParseError => {
    const values: Term['values'] = []
    do {
      at += 1
      take(SPACES)
      const next = value()
      if (isParseError(next)) return next
      if (values.length === RSQL.listMax) return parseError(`more than ${RSQL.listMax} values`, next.at)
      values.push(next)
      take(SPACES)
    } while (text[at] === ',')
    if (text[at] !== ')') return parseError('a closing parenthesis or a comma is missing', at)
    at += 1
    return values
  }
  const value = (): Term['values'][number] | ParseError => {
    const start = at
    const quote = text[at]
    if (quote !== '"' && quote !== "'") {
      const bare = take(BARE)
      if (bare === undefined) return parseError('a value is missing', start)
      const cut = text.slice(start, at + ' 00:00'.length)
      return hasLostPlus(cut) ? parseError(LOST_PLUS, at) : { text: bare, at: start }
    }
    let read = ''
    for (at += 1; at < text.length; at += 1) {
      const sign = text[at] as string
      if (sign === quote) {
        at += 1
        return { text: read, at: start }
      }
      // Inside quotes a backslash escapes the next character; outside it is an ordinary character.
      if (sign === '\\') at += 1
      read += text[at] ?? ''
    }
    return parseError('a quote is not closed', start)
  }

  take(SPACES)
  const whole = any(0)
  if (isParseError(whole)) return whole
  take(SPACES)
  return at === text.length ? whole : parseError('a connective (; or ,) is missing', at)
}

function only(parts: readonly Expression[]): Expression | undefined {
  return parts.length === 1 ? parts[0] : undefined
}
