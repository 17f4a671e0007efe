// Random search expressions, each with a function that tells which reports match. Only the names of the fields are
// shared with the product's parser.
import fc from 'fast-check'

export interface Shown {
  reportUid: string
  reportType: string
  reportParameter: Record<string, unknown>
  mimeType: string
  reportEntityUid: string
  fileName: string | null
  /** ms since the epoch. */
  createdOn: number
  modifiedOn: number
  status: string
}

export interface Filter {
  text: string
  matches(report: Shown): boolean
  mentionsEntity: boolean
}

const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
const written = (text: string, quote: boolean) =>
  quote || text === '' || /["'();&,=!~<>\s]/.test(text) ? quoted(text) : text

/** The first moment of the day or time that a text names, and the first moment after it. */
function spanOf(text: string): { from: number; to: number } {
  if (text.length === 10)
    return { from: Date.parse(`${text}T00:00:00Z`), to: Date.parse(`${text}T00:00:00Z`) + 86_400_000 }
  const [, fraction] = /\.(\d+)/.exec(text) ?? []
  const length = fraction ? 10 ** (3 - fraction.length) : /T\d\d:\d\d:/.test(text) ? 1_000 : 60_000
  return { from: Date.parse(text), to: Date.parse(text) + length }
}

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=' | '=in=' | '=out=' | '=regex='
const VERBOSE: Partial<Record<Operator, string>> = { '<': '=lt=', '<=': '=le=', '>': '=gt=', '>=': '=ge=' }

function holds(
  operator: Operator,
  values: string[],
  is: (value: string) => boolean,
  below: (value: string) => boolean,
  above: (value: string) => boolean,
): boolean {
  const [one = ''] = values
  switch (operator) {
    case '==':
      return is(one)
    case '!=':
      return !is(one)
    case '=in=':
      return values.some(is)
    case '=out=':
      return !values.some(is)
    case '<':
      return below(one)
    case '<=':
      return below(one) || is(one)
    case '>':
      return above(one)
    default:
      return above(one) || is(one)
  }
}

function textMatches(value: string | null, operator: Operator, values: string[]): boolean {
  if (value === null) return operator === '!=' || operator === '=out='
  if (operator === '=regex=') return new RegExp(values[0] ?? '').test(value)
  return holds(
    operator,
    values,
    each => value === each,
    each => value < each,
    each => value > each,
  )
}

function momentMatches(ms: number, operator: Operator, values: string[]): boolean {
  const within = (value: string) => ms >= spanOf(value).from && ms < spanOf(value).to
  return holds(
    operator,
    values,
    within,
    value => ms < spanOf(value).from,
    value => ms >= spanOf(value).to,
  )
}

const CHOICE: Operator[] = ['==', '=in=', '=out=']
const TEXT: Operator[] = [...CHOICE, '=regex=']
const DATES: Operator[] = ['==', '!=', '<', '<=', '>', '>=', '=in=', '=out=']

/** Filters over these reports, so that most find something. */
export function filters(reports: readonly Shown[]): fc.Arbitrary<Filter> {
  const of = <T>(pick: (report: Shown) => T) => fc.constantFrom(...reports.map(pick))
  const pattern = fc
    .array(
      fc.constantFrom(
        'a',
        '1',
        'report',
        '_',
        '[0-9a-f]',
        '[^x]',
        '\\.',
        '.',
        '(a|b)',
        '\\d',
        '(csv|pdf)',
        '%',
        '^',
        '$',
        'b*',
        '[a-c]{1,2}',
        '(1|2)+',
        '\\\\',
      ),
      { minLength: 1, maxLength: 5 },
    )
    .map(parts => parts.join(''))
    // A repetition needs something to repeat.
    .filter(text => !/(^|[(|^$*+}])[*+{]/.test(text))
  const moment = (pick: (report: Shown) => number) =>
    fc
      .tuple(
        of(pick),
        fc.integer({ min: -90_000_000, max: 90_000_000 }),
        fc.constantFrom('day', 'minute', 'second', 'tenth', 'ms', 'offset', 'exact'),
      )
      .map(([ms, shift, form]) => {
        const text = new Date(form === 'exact' ? ms : ms + shift).toISOString()
        if (form === 'day') return text.slice(0, 10)
        if (form === 'minute') return `${text.slice(0, 16)}Z`
        if (form === 'second') return `${text.slice(0, 19)}Z`
        if (form === 'tenth') return `${text.slice(0, 21)}Z`
        if (form === 'offset') return `${new Date(Date.parse(text) + 5_400_000).toISOString().slice(0, 19)}+01:30`
        return text
      })
  const textField = (
    field: string,
    operators: Operator[],
    value: fc.Arbitrary<string>,
    pick: (report: Shown) => string | null,
  ) =>
    fc
      .constantFrom(...operators)
      .chain(operator =>
        term(field, operator, operator === '=regex=' ? pattern : value, (report, values) =>
          textMatches(pick(report), operator, values),
        ),
      )
  const momentField = (field: 'createdOn' | 'modifiedOn') =>
    fc.constantFrom(...DATES).chain(operator =>
      term(
        field,
        operator,
        moment(report => report[field]),
        (report, values) => momentMatches(report[field], operator, values),
      ),
    )
  const dayField = (name: string) =>
    textField(
      `reportParameter.${name}`,
      DATES,
      fc.constantFrom('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-28'),
      report => (report.reportParameter[name] as string | undefined) ?? null,
    )
  const single = fc.oneof(
    momentField('createdOn'),
    momentField('modifiedOn'),
    dayField('clearingDate'),
    dayField('reportableDay'),
    textField(
      'status',
      CHOICE,
      of(report => report.status),
      report => report.status,
    ),
    textField(
      'mimeType',
      CHOICE,
      of(report => report.mimeType),
      report => report.mimeType,
    ),
    textField(
      'reportType',
      CHOICE,
      of(report => report.reportType),
      report => report.reportType,
    ),
    textField(
      'fileName',
      TEXT,
      of(report => report.fileName ?? 'none'),
      report => report.fileName,
    ),
    textField(
      'reportUid',
      TEXT,
      of(report => report.reportUid),
      report => report.reportUid,
    ),
    textField(
      'reportEntityUid',
      ['==', '=in='],
      of(report => report.reportEntityUid),
      report => report.reportEntityUid,
    ).map(filter => ({ ...filter, mentionsEntity: true })),
  )
  return fc.letrec<{ any: Filter }>(tie => ({
    any: fc.oneof(
      { depthSize: 'small', maxDepth: 3, withCrossShrink: true },
      single,
      fc
        .tuple(fc.array(tie('any'), { minLength: 2, maxLength: 4 }), fc.constantFrom(';', ' and '))
        .map(([parts, sign]) => joined(parts, sign, report => parts.every(part => part.matches(report)))),
      fc
        .tuple(fc.array(tie('any'), { minLength: 2, maxLength: 4 }), fc.constantFrom(',', ' or '))
        .map(([parts, sign]) => joined(parts, sign, report => parts.some(part => part.matches(report)))),
    ),
  })).any
}

function term(
  field: string,
  operator: Operator,
  value: fc.Arbitrary<string>,
  matches: (report: Shown, values: string[]) => boolean,
): fc.Arbitrary<Filter> {
  const listed = operator === '=in=' || operator === '=out='
  const values = listed ? fc.array(value, { minLength: 1, maxLength: 4 }) : value.map(one => [one])
  return fc.tuple(values, fc.boolean(), fc.boolean()).map(([given, quote, verbose]) => {
    const texts = given.map(one => written(one, quote))
    const sign = (verbose && VERBOSE[operator]) || operator
    return {
      text: `${field}${sign}${listed ? `(${texts.join(',')})` : texts[0]}`,
      matches: report => matches(report, given),
      mentionsEntity: false,
    }
  })
}

/** Joins parts, each in parentheses unless it is a single comparison, so that precedence plays no part. */
function joined(parts: Filter[], sign: string, matches: Filter['matches']): Filter {
  const text = parts.map(part => (/[;,]| and | or /.test(part.text) ? `(${part.text})` : part.text)).join(sign)
  return { text, matches, mentionsEntity: parts.some(part => part.mentionsEntity) }
}
