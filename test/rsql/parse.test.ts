import type { ExpressionNode } from '@rsql/ast'
import { parse as parseOther } from '@rsql/parser'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compile, type Fields } from '../../src/rsql/compile.ts'
import { PATTERN_FORMS, searchGuide } from '../../src/rsql/guide.ts'
import { type Expression, parse, RSQL } from '../../src/rsql/parse.ts'
import { isParseError } from '../../src/rsql/parse-error.ts'
import { checkPattern, PATTERN } from '../../src/rsql/safe-regex.ts'
import { spanOf } from '../../src/rsql/time-span.ts'
import { filters } from './filters.ts'

const shapeOf = (expression: Expression): unknown =>
  'field' in expression
    ? [expression.field, expression.operator, ...expression.values.map(({ text }) => text)]
    : 'all' in expression
      ? { all: expression.all.map(shapeOf) }
      : { any: expression.any.map(shapeOf) }

const read = (text: string) => {
  const found = parse(text)
  return isParseError(found) ? `${found.at}: ${found.message}` : shapeOf(found)
}

describe('an expression is refused', () => {
  it.each([
    ['', 0, 'the name of a field is missing'],
    ['a', 1, 'an operator is missing'],
    ['a==', 3, 'a value is missing'],
    ['a=foo=b', 1, 'this operator is not known'],
    ['a=IN=(b)', 1, 'this operator is not known'],
    ['a==b;', 5, 'the name of a field is missing'],
    ['a==b c==d', 5, 'a connective (; or ,) is missing'],
    ['a==b andc==d', 5, 'a connective (; or ,) is missing'],
    ['(a==b', 5, 'a closing parenthesis or a connective is missing'],
    ['a==b)', 4, 'a connective (; or ,) is missing'],
    ['a==b&', 5, 'the name of a field is missing'],
    ['a==b&&c==d', 5, 'the name of a field is missing'],
    ['a=in=()', 6, 'a value is missing'],
    ['a=in=(b,)', 8, 'a value is missing'],
    ['a=in=(b c)', 8, 'a closing parenthesis or a comma is missing'],
    ['a=="b', 3, 'a quote is not closed'],
    ['a=="b\\"', 3, 'a quote is not closed'],
    ['a==b\tand c==d', 4, 'a control character or half a character'],
    ['a=="\0"', 4, 'a control character or half a character'],
    ['"a"==b', 0, 'the name of a field is missing'],
    ['a~b', 1, 'an operator is missing'],
    ['a == ', 5, 'a value is missing'],
    ['a==b AND ', 9, 'the name of a field is missing'],
    ['a>2026-01-01T00:00:00 01:00', 21, 'the + of this time became a blank; in a URL, write + as %2B'],
    ['a=in=(2026-01-01T00:00 01:00)', 22, 'the + of this time became a blank; in a URL, write + as %2B'],
  ])('%j at %i: %s', (text, at, what) => {
    expect(parse(text)).toEqual({ parseError: true, at, message: `search, character ${at + 1}: ${what}.` })
  })

  it('beyond its bounds: characters, depth, comparisons, values of a list', () => {
    const deep = (levels: number) => `${'('.repeat(levels)}a==b${')'.repeat(levels)}`
    expect(read(deep(RSQL.depthMax))).toEqual(['a', '==', 'b'])
    expect(read(deep(RSQL.depthMax + 1))).toContain('parentheses deeper than 16')
    expect(read('('.repeat(2_000))).toContain('parentheses deeper than 16')
    const many = (terms: number) => Array.from({ length: terms }, () => 'a==b').join(',')
    expect(read(many(RSQL.termsMax))).toHaveProperty('any.length', 64)
    expect(read(many(RSQL.termsMax + 1))).toContain('more than 64 comparisons')
    const list = (values: number) => `a=in=(${Array.from({ length: values }, () => 'b').join(',')})`
    expect(read(list(RSQL.listMax))).toHaveLength(102)
    expect(read(list(RSQL.listMax + 1))).toContain('more than 100 values')
    expect(read(`a==${'b'.repeat(RSQL.charactersMax)}`)).toContain('more than 2048 characters')
  })

  it('whatever it is, without anything being thrown', () => {
    const pieces = fc.array(
      fc.constantFrom(
        'a',
        '==',
        '=in=',
        '(',
        ')',
        ',',
        ';',
        ' and ',
        ' or ',
        '"',
        "'",
        '\\',
        'b',
        '<',
        '=',
        '!',
        '~',
        '*',
        '\ud800',
        '\n',
      ),
      { maxLength: 40 },
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 200 }),
          pieces.map(parts => parts.join('')),
        ),
        text => {
          const found = parse(text)
          if (isParseError(found)) expect(found.at).toBeLessThanOrEqual(text.length)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe('an expression', () => {
  it.each([
    [
      'a==b;c==d,e==f',
      {
        any: [
          {
            all: [
              ['a', '==', 'b'],
              ['c', '==', 'd'],
            ],
          },
          ['e', '==', 'f'],
        ],
      },
    ],
    [
      'a==b or c==d and e==f',
      {
        any: [
          ['a', '==', 'b'],
          {
            all: [
              ['c', '==', 'd'],
              ['e', '==', 'f'],
            ],
          },
        ],
      },
    ],
    [
      '(a==b,c==d);e==f',
      {
        all: [
          {
            any: [
              ['a', '==', 'b'],
              ['c', '==', 'd'],
            ],
          },
          ['e', '==', 'f'],
        ],
      },
    ],
    [
      'a=lt=1;b=ge=2;c>3;d<=4',
      {
        all: [
          ['a', '<', '1'],
          ['b', '>=', '2'],
          ['c', '>', '3'],
          ['d', '<=', '4'],
        ],
      },
    ],
    ["a=in=(b,\"c,d\",'e\\'f')", ['a', '=in=', 'b', 'c,d', "e'f"]],
    ['a=="\\\\d;x"', ['a', '==', '\\d;x']],
    ['a==b\\', ['a', '==', 'b\\']],
    ['a == b', ['a', '==', 'b']],
    ['a  =in=  ( b , c )', ['a', '=in=', 'b', 'c']],
    ['a =ge= "b c"', ['a', '>=', 'b c']],
    [
      'a==b AND c==d Or e==f',
      {
        any: [
          {
            all: [
              ['a', '==', 'b'],
              ['c', '==', 'd'],
            ],
          },
          ['e', '==', 'f'],
        ],
      },
    ],
    ['AND==OR', ['AND', '==', 'OR']],
    ['and==or', ['and', '==', 'or']],
    [
      'a==or or b==and',
      {
        any: [
          ['a', '==', 'or'],
          ['b', '==', 'and'],
        ],
      },
    ],
    [
      '(a==b)and(c==d)',
      {
        all: [
          ['a', '==', 'b'],
          ['c', '==', 'd'],
        ],
      },
    ],
    [
      'a==b&c==d & e==f,g=="h&i"',
      {
        any: [
          {
            all: [
              ['a', '==', 'b'],
              ['c', '==', 'd'],
              ['e', '==', 'f'],
            ],
          },
          ['g', '==', 'h&i'],
        ],
      },
    ],
    ['createdOn=ge=2026-01-01T00:00:00+01:00', ['createdOn', '>=', '2026-01-01T00:00:00+01:00']],
  ])('%s is read as it binds', (text, shape) => {
    expect(read(text)).toEqual(shape)
  })
})

describe('compiling', () => {
  const fields: Fields = {
    name: { type: 'text', sql: 'name', operators: ['==', '=in=', '=regex='] },
    at: { type: 'moment', sql: 'at', operators: ['<'] },
    day: { type: 'day', sql: 'day', operators: ['=='] },
    id: { type: 'uuid', sql: 'id', operators: ['=='] },
    state: { type: 'text', sql: 'state', operators: ['=='], words: ['ON'] },
  }
  const UNKNOWN = 'this field is not known; known are name, at, day, id, state'
  const compiled = (text: string) => {
    const expression = parse(text)
    if (isParseError(expression)) return expression.message
    const found = compile(expression, fields, 3)
    return isParseError(found) ? found.message : found
  }

  it.each([
    ['other==1', `search, character 1: ${UNKNOWN}.`],
    ['__proto__==1', `search, character 1: ${UNKNOWN}.`],
    ['constructor==1', `search, character 1: ${UNKNOWN}.`],
    ['name==a;name<b', 'search, character 13: this field does not take this operator, only == =in= =regex=.'],
    ['name==(a,b)', 'search, character 8: only =in= and =out= take a list.'],
    ['id==1', 'search, character 5: the value is not a UUID.'],
    ['day==2026-02-30', 'search, character 6: the value is not a date such as 2030-01-31.'],
    ['at<yesterday', 'search, character 4: the value is not a date or a time such as 2030-01-31T12:00:00Z.'],
    ['state==OFF', 'search, character 8: this field has no such value, only ON.'],
    ['name=regex="(a"', 'search, character 12: a parenthesis is not closed.'],
  ])('%s is refused with its place', (text, message) => {
    expect(compiled(text)).toBe(message)
  })

  it('puts no value into the text', () => {
    const evil = `x'); drop table tokenmill.report; --`
    expect(compiled(`name=="${evil}",name=in=("${evil}","$1")`)).toEqual({
      text: '(name = $3::text or name = any($4::text[]))',
      values: [evil, [evil, '$1']],
      fields: new Set(['name']),
    })
  })

  it('lets * stand for any characters where a field says so, and nowhere else', () => {
    const wild: Fields = {
      file: { type: 'text', sql: 'file', operators: ['==', '!=', '=in='], wildcard: true },
      name: { type: 'text', sql: 'name', operators: ['=='] },
    }
    const of = (text: string) => {
      const expression = parse(text)
      return isParseError(expression) ? expression : compile(expression, wild, 1)
    }
    expect(of('file==*X*')).toMatchObject({ text: 'file like $1::text', values: ['%X%'] })
    expect(of('file!="a_b%\\\\*.csv"')).toMatchObject({
      text: '(file like $1::text) is not true',
      values: ['a\\_b\\%\\\\%.csv'],
    })
    expect(of('file==X')).toMatchObject({ text: 'file = $1::text', values: ['X'] })
    expect(of('file=in=(*X*)')).toMatchObject({ text: 'file = any($1::text[])', values: [['*X*']] })
    expect(of('name==*X*')).toMatchObject({ text: 'name = $1::text', values: ['*X*'] })
  })

  it('says that the + of a quoted time was lost', () => {
    expect(compiled('at<"2026-01-01T00:00:00 01:00"')).toContain('write + as %2B')
    expect(compiled('at<"2026-01-01T00:00:00 1:00"')).not.toContain('%2B')
  })

  it('lets a moment stand for as long as it is exact', () => {
    expect(spanOf('2024-02-29')).toEqual({ from: '2024-02-29T00:00:00.000000Z', to: '2024-03-01T00:00:00.000000Z' })
    expect(spanOf('1969-12-31T23:59:59.5Z')).toEqual({
      from: '1969-12-31T23:59:59.500000Z',
      to: '1969-12-31T23:59:59.600000Z',
    })
    expect(spanOf('2026-01-01T00:30+01:00')).toEqual({
      from: '2025-12-31T23:30:00.000000Z',
      to: '2025-12-31T23:31:00.000000Z',
    })
    for (const wrong of [
      '2026-13-01',
      '2026-01-01T24:00:00Z',
      '2026-01-01T00:00:00',
      '9999-12-31',
      '0001-01-01',
      '2026-01-01T00:00:60Z',
    ])
      expect(spanOf(wrong), wrong).toBeUndefined()
  })
})

describe('a pattern', () => {
  it.each([
    '',
    'a'.repeat(PATTERN.charactersMax + 1),
    '(?i)a',
    '(?=a)b',
    '(a)\\1',
    '\\m',
    'a**',
    '*a',
    '(|a)',
    'a||b',
    '()',
    '((((((a))))))',
    '(a{16}){17}',
    '((a{20}){20}){20}',
    'a{257}',
    'a{2,1}',
    'a{',
    '[[:alpha:]]',
    '[a',
    '[]a]',
    '[z-a]',
    '[\\w-z]',
    'a)',
    '***=a',
    'a{1}{2}',
    '^*',
    '\\',
    'a\\',
  ])('%j is refused', pattern => {
    expect(checkPattern(pattern)).toBeDefined()
  })
  it.each([
    'a',
    '^a.*b$',
    '(settlement|invoice)_\\d{4}',
    '[a-z0-9_-]+'.replace('_-', '_'),
    '\\.csv$',
    'a?b+c*',
    '[^/]{1,16}',
    '(a|b){2,8}',
    'ä',
  ])('%j is taken', pattern => {
    expect(checkPattern(pattern)).toBeUndefined()
  })
})

describe('the guide to a search', () => {
  const fields: Fields = {
    name: { type: 'text', sql: 'secret_column', operators: ['==', '=regex='] },
    state: { type: 'text', sql: 'state', operators: ['=='], words: ['ON', 'OFF'] },
  }
  it('has a line for each field, and names no column of the store', () => {
    const guide = searchGuide(fields)
    expect(guide).toContain('| `name`  | `==` `=regex=` | text')
    expect(guide).toContain('| `state` | `==`           | `ON`, `OFF` |')
    expect(guide).not.toContain('secret_column')
  })
  it('lists the letters of a pattern as the check takes them', () => {
    for (const [form] of PATTERN_FORMS) expect(checkPattern(form), form).toBeUndefined()
    const guide = searchGuide(fields)
    for (let code = 0x21; code < 0x7f; code += 1) {
      const escaped = `\\${String.fromCharCode(code)}`
      expect(guide.includes(`\`${escaped}\``), escaped).toBe(checkPattern(escaped) === undefined)
    }
  })
})

describe('another parser of RSQL', () => {
  const VERBOSE: Record<string, string> = { '=lt=': '<', '=le=': '<=', '=gt=': '>', '=ge=': '>=' }
  const flat = (node: ExpressionNode, sign: string): unknown[] =>
    node.type === 'LOGIC' && node.operator === sign
      ? [...flat(node.left, sign), ...flat(node.right, sign)]
      : [otherShape(node)]
  const otherShape = (node: ExpressionNode): unknown =>
    node.type === 'COMPARISON'
      ? [node.left.selector, VERBOSE[node.operator] ?? node.operator, node.right.value].flat()
      : node.operator === ';' || node.operator === 'and'
        ? { all: flat(node, node.operator) }
        : { any: flat(node, node.operator) }
  // It keeps no parentheses, so that what they nest and what stands side by side look the same.
  const merged = (shape: unknown): unknown => {
    if (Array.isArray(shape)) return shape
    const [sign, parts] = Object.entries(shape as Record<string, unknown[]>)[0] ?? ['', []]
    return {
      [sign]: parts
        .map(merged)
        .flatMap(part =>
          Array.isArray(part)
            ? [part]
            : Object.entries(part as object)[0]?.[0] === sign
              ? (Object.values(part as object)[0] as unknown[])
              : [part],
        ),
    }
  }

  it('reads what both take alike', () => {
    const report = {
      reportUid: '6a5fa9fe-eafe-4bea-8f95-c8f83dc8db48',
      reportType: 'INVOICE',
      reportParameter: {},
      mimeType: 'text/csv',
      reportEntityUid: '5b397565-1c3c-4b92-8044-c096dc30a1c2',
      fileName: `a"b'c\\d e.txt`,
      createdOn: Date.UTC(2026, 0, 1),
      modifiedOn: Date.UTC(2026, 0, 1),
      status: 'FAILED',
    }
    fc.assert(
      fc.property(filters([report]), ({ text }) => {
        const ours = parse(text)
        if (!isParseError(ours)) expect(merged(shapeOf(ours)), text).toEqual(merged(otherShape(parseOther(text))))
      }),
      { numRuns: 300 },
    )
  })
})
