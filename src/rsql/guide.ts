// Describes in Markdown how a resource is searched: its fields with their operators and values, and what a pattern may
// hold. The text is made from the tables that the search itself uses, for the docs and for OpenAPI.
import { markdownTable } from '../markdown.ts'
import type { Field, Fields } from './compile.ts'
import { RSQL } from './parse.ts'
import { checkPattern, PATTERN } from './safe-regex.ts'

const VALUES = {
  text: 'text',
  uuid: 'UUID',
  day: 'date such as `2030-01-31`',
  moment: 'date or time such as `2030-01-31` or `2030-01-31T12:00:00Z`',
} as const satisfies Record<Field['type'], string>

/** A table with one row per field. */
function fieldTable(fields: Fields): string {
  const rows = Object.entries(fields).map(([name, { type, operators, words }]) => [
    code(name),
    operators.map(code).join(' '),
    words ? words.map(code).join(', ') : VALUES[type],
  ])
  return markdownTable(['field', 'operators', 'values'], rows)
}

/** The elements that a pattern of `=regex=` may have. A test compares each row with the check. */
export const PATTERN_FORMS: readonly (readonly [form: string, means: string])[] = [
  ['.', 'any character'],
  ['^', 'the beginning of the text'],
  ['$', 'the end of the text'],
  ['[a-z0-9]', 'one of these characters; a range is of letters of one case, or of digits'],
  ['[^a-z]', 'any other character'],
  ['(ab)', `a group; groups may be nested ${PATTERN.depthMax} deep`],
  ['a|b', 'one or the other'],
  ['a?', 'never or once'],
  ['a*', 'any number of times'],
  ['a+', 'at least once'],
  ['a{2}', 'exactly 2 times'],
  ['a{2,}', 'at least 2 times'],
  ['a{2,5}', '2 to 5 times'],
]

export function patternTable(): string {
  const classes = escapes().filter(escaped => /[A-Za-z]/.test(escaped))
  return markdownTable(
    ['pattern', 'means'],
    [
      ...PATTERN_FORMS.map(([form, means]) => [code(form), means]),
      [classes.map(code).join(' '), 'a digit, a space, a letter or digit or `_`; in capitals: any other character'],
    ],
  )
}

/** Describes fields, patterns and the limits of an expression for one resource. */
export function searchGuide(fields: Fields): string {
  const wildcards = Object.entries(fields).flatMap(([name, { wildcard }]) => (wildcard ? [name] : []))
  const signs = escapes().filter(escaped => !/[A-Za-z]/.test(escaped))
  return `${fieldTable(fields)}
${wildcards.length > 0 ? `\nIn ${wildcards.map(code).join(', ')}, \`*\` stands for any characters with \`==\`: \`${wildcards[0]}==*X*\`. In every other field and with \`=in=\` and \`=out=\` it is an ordinary character.\n` : ''}
A date matches the whole day. A time matches its whole smallest unit: \`==2030-01-31T12:00Z\` matches that whole minute. Times are in UTC (\`Z\`) or have an offset (\`+01:00\`). A pattern of \`=regex=\` matches anywhere in the text unless \`^\` and \`$\` anchor it. It may hold:

${patternTable()}

Every other character matches itself. After a backslash these characters match themselves, too: ${signs.map(code).join(' ')}. A pattern has at most ${PATTERN.charactersMax} characters. Its repeated parts, written out as often as they repeat (\`?\`, \`*\` and \`+\` count as twice), have at most ${PATTERN.repeatsMax} characters in all. A search expression has at most ${RSQL.charactersMax} characters, ${RSQL.termsMax} comparisons, ${RSQL.depthMax} nested parentheses, and ${RSQL.listMax} values in a list.`
}

const code = (text: string) => `\`${text}\``

/** All characters that may follow a backslash. */
function escapes(): string[] {
  const printable = Array.from({ length: 0x7f - 0x21 }, (_, index) => `\\${String.fromCharCode(0x21 + index)}`)
  return printable.filter(escaped => checkPattern(escaped) === undefined)
}
