// Compiles an expression to SQL over the fields that the caller passes: only those can be searched, and every value
// becomes a parameter. The SQL doesn't limit whose rows are seen: the caller adds that condition.

import type { Expression, Operator, Term } from './parse.ts'
import { isParseError, LOST_PLUS, type ParseError, parseError } from './parse-error.ts'
import { checkPattern } from './safe-regex.ts'
import { hasLostPlus, isDay, spanOf } from './time-span.ts'

/** `day`: a date stored as text, `YYYY-MM-DD`. `moment`: a timestamptz. */
type FieldType = 'text' | 'uuid' | 'day' | 'moment'

export interface Field {
  type: FieldType
  /** The field's SQL expression. It stands in the code; no caller can set it. */
  sql: string
  operators: readonly Operator[]
  /** All values that the field can have, if they are a fixed set. */
  words?: readonly string[]
  /** With `==` and `!=`, `*` stands for any characters. No value of such a field has a `*`. */
  wildcard?: true
}

/** Fields by the names that callers use. */
export type Fields = Readonly<Record<string, Field>>

interface Condition {
  /** The SQL for a `where`, with parentheses if needed. Its parameters are numbered from `firstParameter`. */
  text: string
  values: (string | string[])[]
  /** The names of the fields that the expression uses. */
  fields: ReadonlySet<string>
}

/**
 * Compiles an expression. A row without a value in a field is found only by `!=` and `=out=`. RSQL can't negate a part
 * of an expression, so SQL's "unknown" may count as false.
 */
export function compile(expression: Expression, fields: Fields, firstParameter: number): Condition | ParseError {
  const values: Condition['values'] = []
  const used = new Set<string>()
  const parameter = (value: string | string[], type: string) => {
    values.push(value)
    return `$${firstParameter + values.length - 1}::${type}`
  }
  const visit = (node: Expression): string | ParseError => {
    if ('field' in node) {
      const field = Object.hasOwn(fields, node.field) ? fields[node.field] : undefined
      if (!field) return parseError(`this field is not known; known are ${Object.keys(fields).join(', ')}`, node.at)
      used.add(node.field)
      return checkTerm(node, field) ?? termOf(node, field, parameter)
    }
    const parts: string[] = []
    for (const part of 'all' in node ? node.all : node.any) {
      const text = visit(part)
      if (isParseError(text)) return text
      parts.push(text)
    }
    return `(${parts.join('all' in node ? ' and ' : ' or ')})`
  }
  const text = visit(expression)
  return isParseError(text) ? text : { text, values, fields: used }
}

function checkTerm({ operator, operatorAt, listed, values }: Term, field: Field): ParseError | undefined {
  if (!field.operators.includes(operator))
    return parseError(`this field does not take this operator, only ${field.operators.join(' ')}`, operatorAt)
  if (listed && operator !== '=in=' && operator !== '=out=')
    return parseError('only =in= and =out= take a list', values[0]?.at ?? operatorAt)
  for (const { text, at } of values) {
    const wrong = operator === '=regex=' ? checkPattern(text)?.what : checkValue(text, field)
    if (wrong !== undefined) return parseError(wrong, at)
  }
  return undefined
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

function checkValue(text: string, { type, words }: Field): string | undefined {
  if (words && !words.includes(text)) return `this field has no such value, only ${words.join(', ')}`
  if (type === 'uuid' && !UUID.test(text)) return 'the value is not a UUID'
  if (type === 'day' && !isDay(text)) return 'the value is not a date such as 2030-01-31'
  if (type === 'moment' && hasLostPlus(text)) return LOST_PLUS
  if (type === 'moment' && !spanOf(text)) return 'the value is not a date or a time such as 2030-01-31T12:00:00Z'
  return undefined
}

type Parameter = (value: string | string[], type: string) => string

function termOf(term: Term, field: Field, parameter: Parameter): string {
  const { operator, values } = term
  const texts = values.map(({ text }) => text)
  if (field.type === 'moment') return momentOf(operator, texts, field.sql, parameter)
  const column = field.type === 'day' ? `(${field.sql}) collate "C"` : field.sql
  const type = field.type === 'uuid' ? 'uuid' : 'text'
  const [one = ''] = texts
  if (field.wildcard && one.includes('*') && (operator === '==' || operator === '!=')) {
    const like = `${column} like ${parameter(likeOf(one), type)}`
    return operator === '==' ? like : `(${like}) is not true`
  }
  switch (operator) {
    case '==':
      return `${column} = ${parameter(one, type)}`
    case '!=':
      return `${column} is distinct from ${parameter(one, type)}`
    case '=in=':
      return `${column} = any(${parameter(texts, `${type}[]`)})`
    case '=out=':
      return `(${column} = any(${parameter(texts, `${type}[]`)})) is not true`
    case '=regex=':
      return `(${field.sql})::text ~ ${parameter(one, 'text')}`
    default:
      return `${column} ${operator} ${parameter(one, type)}`
  }
}

function likeOf(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')
}

function momentOf(operator: Operator, texts: readonly string[], column: string, parameter: Parameter): string {
  const spans = texts.flatMap(text => spanOf(text) ?? [])
  const within = () =>
    spans
      .map(({ from, to }) => {
        const least = parameter(from, 'timestamptz')
        return `(${column} >= ${least} and ${column} < ${parameter(to, 'timestamptz')})`
      })
      .join(' or ')
  const [{ from, to } = { from: '', to: '' }] = spans
  switch (operator) {
    case '<':
      return `${column} < ${parameter(from, 'timestamptz')}`
    case '<=':
      return `${column} < ${parameter(to, 'timestamptz')}`
    case '>':
      return `${column} >= ${parameter(to, 'timestamptz')}`
    case '>=':
      return `${column} >= ${parameter(from, 'timestamptz')}`
    case '!=':
    case '=out=':
      return `(${within()}) is not true`
    default:
      return `(${within()})`
  }
}
