// Generates profiles and records, writes the file that holds the records, and computes in memory what the reader of
// files must find.
import fc from 'fast-check'
import type { Profile } from '../../../../producers/rows/profile/profile.ts'
import { formulaForm, spreadsheetForm } from '../../../../producers/rows/spreadsheet-form.ts'
import { profile } from './profiled.ts'

/** Fields of a record, as texts. */
export interface Made {
  id: string
  number: string
  month: string
  year: string
  expiry: string
  first: string
  last: string
  type: string
  customer: string
  networkIds: string
  linkId: string
  standard: string
  zip: string
  day: string
}
const NAMES = [
  ...(['id', 'number', 'month', 'year', 'expiry', 'first', 'last', 'type'] as const),
  ...(['customer', 'networkIds', 'linkId', 'standard', 'zip', 'day'] as const),
] as const

export interface Declared {
  kind: 'delimited' | 'fixed' | 'ndjson' | 'json'
  encoding: 'utf-8' | 'windows-1252' | 'iso-8859-1' | 'utf-16'
  delimiter: string
  quotes: 'doubled' | 'backslash' | 'none'
  quoteAll: boolean
  end: string
  header: 'exact' | 'any_case' | 'none'
  skip_lines: number
  trailer: boolean
  trim: boolean
  null_words: string[]
  remove: string
  too_long: 'reject' | 'drop' | 'cut'
  twoNames: boolean
  form: 'MMYY' | 'YYMM' | 'YYYY-MM' | 'MM/YY' | undefined
  pivot: number | undefined
  last4: boolean
  where: boolean
  no_card: 'skip' | 'reject'
  onFile: OwnerDeclared | undefined
}

interface OwnerDeclared {
  customer: boolean
  separator: string | undefined
  equals: boolean
  zipLength: number | undefined
  day: 'YYYY-MM-DD' | 'DD/MM/YYYY'
}

export const declared: fc.Arbitrary<Declared> = fc.record({
  kind: fc.constantFrom('delimited', 'fixed', 'ndjson', 'json'),
  encoding: fc.constantFrom('utf-8', 'windows-1252', 'iso-8859-1', 'utf-16'),
  delimiter: fc.constantFrom(',', ';', '\t', '|'),
  quotes: fc.constantFrom('doubled', 'backslash', 'none'),
  quoteAll: fc.boolean(),
  end: fc.constantFrom('\n', '\r\n'),
  header: fc.constantFrom('exact', 'any_case', 'none'),
  skip_lines: fc.nat({ max: 3 }),
  trailer: fc.boolean(),
  trim: fc.boolean(),
  null_words: fc.constantFrom([], ['NULL', '-'], ['\\N']),
  remove: fc.constantFrom('', ' -', '.'),
  too_long: fc.constantFrom('reject', 'drop', 'cut'),
  twoNames: fc.boolean(),
  form: fc.constantFrom('MMYY', 'YYMM', 'YYYY-MM', 'MM/YY', undefined),
  pivot: fc.constantFrom(undefined, 0, 70),
  last4: fc.boolean(),
  where: fc.boolean(),
  no_card: fc.constantFrom('skip', 'reject'),
  onFile: fc.option(
    fc.record({
      customer: fc.boolean(),
      separator: fc.constantFrom(undefined, '/', '- '),
      equals: fc.boolean(),
      zipLength: fc.constantFrom(undefined, 5),
      day: fc.constantFrom('YYYY-MM-DD', 'DD/MM/YYYY'),
    }),
    { nil: undefined },
  ),
})

const odd = fc.string({
  unit: fc.constantFrom('a', 'B', ' ', '"', '\\', ';', ',', '|', '\t', 'é', 'ß', '-', "'"),
  maxLength: 36,
})
/** Texts around the longest name. */
const long = fc.string({ unit: fc.constantFrom('a', ' ', 'é'), minLength: 28, maxLength: 34 })
const word = fc.constantFrom('', 'NULL', '-', '\\N', ' ', 'x')

export const records: fc.Arbitrary<Made[]> = fc.array(
  fc.record({
    id: fc.oneof(fc.constantFrom('c1', 'card_2', ' c3', 'é'), word),
    number: fc.oneof(
      fc.constantFrom('4111111111111111', '4111 1111 1111 1111', '4111-1111-1111-1111', ' 378282246310005', '4111.1'),
      word,
    ),
    month: fc.oneof(fc.constantFrom('5', '05', '12', '13', '0', 'May'), word),
    year: fc.oneof(fc.constantFrom('30', '70', '00', '2030', '99', '1999', '203', '1899'), word),
    expiry: fc.oneof(
      fc.constantFrom('0530', '3005', '2030-05', '5/30', '05/30', '1312', '99/12', '12/99', '0570', '12/70'),
      word,
    ),
    first: fc.oneof(odd, long, word),
    last: fc.oneof(odd, long, word),
    type: fc.constantFrom('card', 'bank', ' card', ''),
    customer: fc.oneof(odd, word),
    networkIds: fc.oneof(
      fc.constantFrom('016', '01/02', '1- 2- ', '/', '378282246310005', '4111 1111 1111 1111'),
      word,
    ),
    linkId: fc.oneof(fc.constantFrom('-AbCdEfGhIjKlMnOpQrStU', 'AbCd_fGhIjKlMnOpQrStUvW'), odd, word),
    standard: fc.constantFrom('c1', 'Y', 'N', '', 'card_2', 'NULL'),
    zip: fc.oneof(fc.constantFrom('1234', '01234', '123456', 'AB1'), word),
    day: fc.oneof(fc.constantFrom('2026-02-28', '2026-02-30', '28/02/2026', '1/1/2026', '02/28/2026'), word),
  }),
  { minLength: 1, maxLength: 12 },
)

const WIDTH = 40
const HEADING = 'a line with one " quote'

/** The texts that the form of the file can hold. */
export function holdable(made: readonly Made[], { kind, quotes, delimiter }: Declared): Made[] {
  const text = (value: string): string => {
    if (kind === 'fixed') return value.replaceAll('\t', '').replace(/^ +| +$/g, '')
    if (kind === 'delimited' && quotes === 'none') return value.replaceAll(delimiter, '')
    return value
  }
  return made.map(one => Object.fromEntries(NAMES.map(name => [name, text(one[name])])) as unknown as Made)
}

export function profileOf(one: Declared): Profile {
  const { kind, encoding, skip_lines, header, delimiter, quotes } = one
  const format = {
    delimited: {
      type: kind,
      encoding,
      delimiter,
      quotes,
      skip_lines,
      header,
      ...(header === 'none' ? { names: NAMES } : {}),
      ...(one.trailer ? { trailer_record: { mark: 'END', count_field: 2 } } : {}),
    },
    fixed: {
      type: kind,
      encoding,
      skip_lines,
      length: WIDTH * NAMES.length,
      columns: NAMES.map((name, index) => ({ name, start: 1 + index * WIDTH, length: WIDTH })),
      ...(one.trailer ? { trailer_record: { mark: 'END', count_start: 4, count_length: 6 } } : {}),
    },
    ndjson: { type: kind, encoding },
    json: { type: kind, encoding, records: 'all[].cards[]' },
  }
  const expiry = one.form === undefined ? { month: 'month', year: 'year' } : { from: 'expiry', form: one.form }
  return profile(
    {
      format: format[kind],
      trim: one.trim,
      null_words: one.null_words,
      no_card: one.no_card,
      ...(one.where ? { where: [{ field: 'type', is: ['card'] }] } : {}),
      ...ownersOf(one),
    },
    {
      reference: one.last4 ? '{id}/{number:last4}' : '{id}',
      card_number: { from: 'number', ...(one.remove === '' ? {} : { remove: one.remove }) },
      expiry: one.pivot === undefined ? expiry : { ...expiry, pivot: one.pivot },
      cardholder_name: { from: one.twoNames ? ['first', 'last'] : ['first'], too_long: one.too_long },
    },
  )
}

function ownersOf({ onFile }: Declared) {
  if (onFile === undefined) return {}
  const { customer, separator, equals, zipLength: length, day: form } = onFile
  const declared = {
    provider: 'shop',
    card_id: '{id}',
    cardholder_name: { from: ['first', 'last'] },
    ...(customer ? { customer_id: '{customer}' } : {}),
    network_transaction_ids: { from: 'networkIds', ...(separator === undefined ? {} : { separator }) },
    transaction_link_id: { from: 'linkId' },
    is_default: equals ? { from: 'standard', equals: 'id' } : { from: 'standard', yes: ['Y', 'c1'], no: ['N'] },
    billing_address: { postal_code: { from: 'zip', ...(length === undefined ? {} : { length }) } },
    agreed_on: { from: 'day', form },
  }
  return { on_file: declared }
}

/** The file that holds the records. */
export function fileOf(made: readonly Made[], one: Declared): Buffer {
  const bytes = (text: string) => {
    if (one.encoding === 'utf-8') return Buffer.from(text)
    return one.encoding === 'utf-16' ? Buffer.from(`\ufeff${text}`, 'utf16le') : Buffer.from(text, 'latin1')
  }
  if (one.kind === 'ndjson') return bytes(made.map(record => JSON.stringify(record) + one.end).join(''))
  if (one.kind === 'json') {
    // Customers of two cards each, and one without any.
    const all = made.flatMap((_, at) => (at % 2 === 0 ? [{ cards: made.slice(at, at + 2) }] : []))
    return bytes(
      JSON.stringify({ before: ['{'], all: [...all, { cards: [] }], after: '"' }, null, one.quoteAll ? 1 : 0),
    )
  }
  const lines = [...Array<string>(one.skip_lines).fill(HEADING)]
  if (one.kind === 'fixed') {
    lines.push(...made.map(record => NAMES.map(name => record[name].padEnd(WIDTH)).join('')))
    if (one.trailer) lines.push(`END${String(made.length).padStart(6, '0')}`)
  } else {
    if (one.header !== 'none') {
      lines.push(NAMES.map(name => (one.header === 'any_case' ? name.toUpperCase() : name)).join(one.delimiter))
    }
    lines.push(...made.map(record => NAMES.map(name => cellOf(record[name], one)).join(one.delimiter)))
    if (one.trailer) lines.push(`END${one.delimiter}${made.length}`)
  }
  return bytes(lines.map(line => line + one.end).join(''))
}

function cellOf(text: string, { quotes, quoteAll, delimiter }: Declared): string {
  if (quotes === 'none' || (!quoteAll && !text.includes(delimiter) && !text.includes('"'))) return text
  return `"${quotes === 'doubled' ? text.replaceAll('"', '""') : text.replace(/[\\"]/g, '\\$&')}"`
}

export interface Expected {
  outcome: string
  cells?: { reference: string; number: string; month: string; year: string; name: string }
  reference?: string | undefined
  repairs: string[]
  /** The members of `on_file`, without what isn't given. */
  owner?: Record<string, unknown> | undefined
}

/** What the reader must make of a record by the profile. */
export function expectedOf(record: Made, one: Declared): Expected {
  const repairs = new Set<string>()
  const clean = (text: string, counts = true) => {
    let rest = text
    if (one.trim) {
      rest = text.trim()
      if (rest !== text && counts) repairs.add('blanks')
    }
    return one.null_words.includes(rest) ? '' : rest
  }
  const id = clean(record.id)
  const given = clean(record.number)
  const number = one.remove === '' ? given : given.split(new RegExp(`[${one.remove}]`)).join('')
  if (number !== given) repairs.add('number_separators')
  const digits = given.replace(/[^0-9]/g, '')
  const tail = digits.length >= 4 ? digits.slice(-4) : ''
  let reference: string | undefined = id
  if (one.last4) {
    if (id === '' && tail === '') reference = ''
    else reference = id === '' || tail === '' ? undefined : `${id}/${tail}`
  }
  const without = (outcome: string): Expected => ({ outcome, reference: reference || undefined, repairs: [] })
  if (one.where && clean(record.type, false) !== 'card') return without('filtered')
  if (number === '') return without(one.no_card === 'skip' ? 'no_card' : 'field_required')
  if (reference === undefined) return without('field_required')
  if (isChanged(record, one, clean)) return without('field_spreadsheet')
  const expiry = expiryOf(record, one, clean)
  const names = [record.first, ...(one.twoNames ? [record.last] : [])].map(text => clean(text)).filter(Boolean)
  if (expiry === undefined) return without('expiry_format')
  let name = names.join(' ')
  if (name.length > 30 && one.too_long !== 'reject') {
    repairs.add(one.too_long === 'drop' ? 'name_dropped' : 'name_cut')
    name = one.too_long === 'drop' ? '' : name.slice(0, 30).trimEnd()
  }
  const owner = ownerOf(record, number, one, { clean, repairs })
  if (typeof owner === 'string') return without(owner)
  const cells = { reference, number, month: expiry.month, year: expiry.year, name }
  const single = one.encoding === 'windows-1252' || one.encoding === 'iso-8859-1'
  if (single && /[éß]/.test(Object.values(cells).join('') + JSON.stringify(owner ?? ''))) repairs.add('encoding')
  return { outcome: 'row', cells, repairs: [...repairs].sort(), owner }
}

/** Which of these texts a spreadsheet has changed, spreadsheet/form.test.ts says. */
function isChanged(record: Made, one: Declared, clean: (text: string, counts?: boolean) => string): boolean {
  const { onFile } = one
  const ids = [record.id]
  const words = one.twoNames || onFile ? [record.first, record.last] : [record.first]
  if (onFile) {
    const { separator } = onFile
    const network = clean(record.networkIds, false)
    ids.push(...(separator === undefined ? [network] : network.split(separator)))
    ids.push(record.linkId, record.zip)
    if (onFile.customer) ids.push(record.customer)
    if (onFile.equals) ids.push(record.standard)
  }
  return (
    ids.some(text => spreadsheetForm(clean(text, false)) !== undefined) ||
    words.some(text => formulaForm(clean(text, false)) !== undefined)
  )
}

/** The members of `on_file`, or why the row is rejected. */
function ownerOf(
  record: Made,
  number: string,
  { onFile }: Declared,
  { clean, repairs }: { clean: (text: string, counts?: boolean) => string; repairs: Set<string> },
): Record<string, unknown> | string | undefined {
  if (onFile === undefined) return undefined
  const customer = onFile.customer ? clean(record.customer) : ''
  const networkText = clean(record.networkIds)
  const linkId = clean(record.linkId)
  const standard = clean(record.standard, false)
  const zip = clean(record.zip)
  const day = clean(record.day)
  const name = [clean(record.first), clean(record.last)].filter(Boolean).join(' ')
  const id = clean(record.id)
  if (id === '') return undefined
  const { separator, zipLength = 0 } = onFile
  const split = separator === undefined ? [networkText] : networkText.split(separator).map(text => clean(text))
  const networkIds = split.filter(Boolean)
  const isWrongDay = day !== '' && !isDay(day, onFile.day)
  const isWrongWord = !onFile.equals && !['', 'Y', 'c1', 'N'].includes(standard)
  const digits = number.replace(/\D/g, '')
  const isOwn = (text: string) => digits.length >= 12 && text.replace(/\D/g, '').includes(digits)
  // In the order in which members are made.
  if (networkIds.some(isOwn)) return 'reference_pan'
  for (const text of [id, customer, name, linkId]) {
    if (isOwn(text)) return 'reference_pan'
    if (text.includes('\t')) return 'field_characters'
  }
  if (isWrongDay) return 'field_format'
  if (isWrongWord) return 'field_value'
  const isShort = /^\d+$/.test(zip) && zip.length < zipLength
  if (isShort) repairs.add('postal_zeros')
  return {
    provider: 'shop',
    card_id: id,
    ...(customer === '' ? {} : { customer_id: customer }),
    ...(name === '' ? {} : { cardholder_name: name }),
    ...(networkIds.length === 0 ? {} : { network_transaction_ids: networkIds }),
    ...(linkId === '' ? {} : { transaction_link_id: linkId }),
    ...(day === ''
      ? {}
      : { agreed_on: onFile.day === 'YYYY-MM-DD' ? day : day.replace(/^(\d+)\/(\d+)\/(\d+)$/, isoOf) }),
    ...(onFile.equals ? { is_default: standard !== '' && standard === clean(record.id, false) } : {}),
    ...(onFile.equals || standard === '' ? {} : { is_default: standard !== 'N' }),
    ...(zip === '' ? {} : { billing_address: { postal_code: isShort ? zip.padStart(5, '0') : zip } }),
  }
}

const isoOf = (_: string, day: string, month: string, year: string) =>
  [year, month.padStart(2, '0'), day.padStart(2, '0')].join('-')

/** Whether a text is one of the dates that these files have, in this form. */
function isDay(text: string, form: OwnerDeclared['day']): boolean {
  return form === 'YYYY-MM-DD' ? text === '2026-02-28' : text === '28/02/2026' || text === '1/1/2026'
}

function expiryOf(record: Made, one: Declared, clean: (text: string) => string) {
  const year = (text: string) => {
    if (/^(19|2\d)\d\d$/.test(text)) return text
    if (!/^\d\d$/.test(text)) return undefined
    return one.pivot !== undefined && Number(text) >= one.pivot ? `19${text}` : `20${text}`
  }
  const month = (text: string) => (/^(0?[1-9]|1[0-2])$/.test(text) ? String(Number(text)) : undefined)
  const both = (monthText: string | undefined, yearText: string | undefined) => {
    const [m, y] = [month(monthText ?? ''), year(yearText ?? '')]
    return m === undefined || y === undefined ? undefined : { month: m, year: y }
  }
  if (one.form === undefined) {
    const [m, y] = [clean(record.month), clean(record.year)]
    return m === '' && y === '' ? { month: '', year: '' } : both(m, y)
  }
  const text = clean(record.expiry)
  if (text === '') return { month: '', year: '' }
  const patterns = {
    MMYY: /^(?<m>\d\d)(?<y>\d\d)$/,
    YYMM: /^(?<y>\d\d)(?<m>\d\d)$/,
    'YYYY-MM': /^(?<y>\d{4})-(?<m>\d\d?)$/,
    'MM/YY': /^(?<m>\d\d?)\/(?<y>\d\d)$/,
  }
  const found = patterns[one.form].exec(text)?.groups
  return both(found?.['m'], found?.['y'])
}
