// RSQL as text: `;`, `&` or `and` binds tighter than `,` or `or`, and a comparison is a field, an operator and one value or
// a list. A parser of our own, for the known one tells no positions and lets unknown operators pass
// (docs/decisions/0011-own-rsql-parser.md). Which fields there are isn't known here.
import { isMisread, type Misread, misread } from './parse-error.ts'

/** Bounds of an expression; `depth` counts parentheses, `terms` comparisons. */
export const RSQL = { charactersMax: 2_048, depthMax: 16, termsMax: 64, listMax: 100 } as const

const OPERATORS = ['==', '!=', '<', '<=', '>', '>=', '=in=', '=out=', '=regex='] as const
export type Operator = (typeof OPERATORS)[number]

export interface Term {
  field: string
  operator: Operator
  values: { text: string; at: number }[]
  /** The values stand in parentheses. */
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
const WORD = /(and|or)(?= |\()/y

/** Never throws. */
export function parse(text: string): Expression | Misread {
  if (text.length > RSQL.charactersMax) {
    return misread(`more than ${RSQL.charactersMax} characters`, RSQL.charactersMax)
  }
  const broken = text.isWellFormed() ? text.search(/\p{Cc}/u) : 0
  if (broken >= 0) return misread('a control character or half a character', broken)
  let at = 0
  let terms = 0

  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  /** Takes one of the spellings of a connective, if it stands here. */
  const takes = (signs: ',' | ';&', word: 'and' | 'or'): boolean => {
    const start = at
    const spaces = take(SPACES) ?? ''
    if (at < text.length && signs.includes(text[at] as string)) {
      at += 1
      take(SPACES)
      return true
    }
    const apart = spaces !== '' || text[start - 1] === ')'
    if (apart && take(WORD) === word) {
      take(SPACES)
      return true
    }
    at = start
    return false
  }
  const chain = (
    part: (depth: number) => Expression | Misread,
    depth: number,
    more: () => boolean,
  ): Expression[] | Misread => {
    const parts: Expression[] = []
    do {
      const next = part(depth)
      if (isMisread(next)) return next
      parts.push(next)
    } while (more())
    return parts
  }
  const any = (depth: number): Expression | Misread => {
    const parts = chain(all, depth, () => takes(',', 'or'))
    return isMisread(parts) ? parts : (only(parts) ?? { any: parts })
  }
  const all = (depth: number): Expression | Misread => {
    const parts = chain(constraint, depth, () => takes(';&', 'and'))
    return isMisread(parts) ? parts : (only(parts) ?? { all: parts })
  }
  const constraint = (depth: number): Expression | Misread => {
    if (text[at] !== '(') return comparison()
    if (depth === RSQL.depthMax) return misread(`parentheses deeper than ${RSQL.depthMax}`, at)
    at += 1
    take(SPACES)
    const inner = any(depth + 1)
    if (isMisread(inner)) return inner
    take(SPACES)
    if (text[at] !== ')') return misread('a closing parenthesis or a connective is missing', at)
    at += 1
    return inner
  }
  const comparison = (): Term | Misread => {
    const start = at
    const field = take(BARE)
    if (field === undefined) return misread('the name of a field is missing', start)
    terms += 1
    if (terms > RSQL.termsMax) return misread(`more than ${RSQL.termsMax} comparisons`, start)
    const operatorAt = at
    const spelt = take(OPERATOR)
    if (spelt === undefined) return misread('an operator is missing', operatorAt)
    const operator = SPELLINGS.get(spelt)
    if (operator === undefined) return misread('this operator is not known', operatorAt)
    const listed = text[at] === '('
    const values = listed ? list() : value()
    if (isMisread(values)) return values
    return { field, operator, values: Array.isArray(values) ? values : [values], listed, at: start, operatorAt }
  }
  const list = (): Term['values'] | Misread => {
    const values: Term['values'] = []
    do {
      at += 1
      take(SPACES)
      const next = value()
      if (isMisread(next)) return next
      if (values.length === RSQL.listMax) return misread(`more than ${RSQL.listMax} values`, next.at)
      values.push(next)
      take(SPACES)
    } while (text[at] === ',')
    if (text[at] !== ')') return misread('a closing parenthesis or a comma is missing', at)
    at += 1
    return values
  }
  const value = (): Term['values'][number] | Misread => {
    const start = at
    const quote = text[at]
    if (quote !== '"' && quote !== "'") {
      const bare = take(BARE)
      return bare === undefined ? misread('a value is missing', start) : { text: bare, at: start }
    }
    let read = ''
    for (at += 1; at < text.length; at += 1) {
      const sign = text[at] as string
      if (sign === quote) {
        at += 1
        return { text: read, at: start }
      }
      // A backslash takes the next character as it is; outside of quotes it is a character like others.
      if (sign === '\\') at += 1
      read += text[at] ?? ''
    }
    return misread('a quote is not closed', start)
  }

  take(SPACES)
  const whole = any(0)
  if (isMisread(whole)) return whole
  take(SPACES)
  return at === text.length ? whole : misread('a connective (; or ,) is missing', at)
}

function only(parts: readonly Expression[]): Expression | undefined {
  return parts.length === 1 ? parts[0] : undefined
}
