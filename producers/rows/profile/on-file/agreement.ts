// What the cardholder agreed to, and the first authorisation under it: words, dates and an amount, each of a declared form.
// A text that doesn't have it rejects its row.
import { refuse } from '../../../../src/errors.ts'
import { checkMinor, minorOf } from '../../../../src/token/amount.ts'
import { minorUnit } from '../../../../src/token/currency.ts'
import { dateReader } from '../../date-form.ts'
import type { Use } from '../cells.ts'
import type { OnFileColumns } from '../on-file-schema.ts'
import { at, type Part } from './part.ts'

export function agreementParts(columns: OnFileColumns, use: Use): Part[] {
  return [
    amountPart(columns, use),
    datePart('first_date', columns.first_date, use),
    wordPart('agreement', columns.agreement, use),
    wordPart('agreed_by', columns.agreed_by, use),
    datePart('agreed_on', columns.agreed_on, use),
    defaultPart(columns.is_default, use),
  ]
}

const NONE: Part = () => ''

/** Writes the first amount and its currency of a row, or nothing if the row has no amount. */
function amountPart({ first_amount: amount, first_currency: currency }: OnFileColumns, use: Use): Part {
  if (amount === undefined || currency === undefined) return NONE
  const amountAt = use(amount.from, at('first_amount.from'))
  const currencyAt = 'from' in currency ? use(currency.from, at('first_currency.from')) : -1
  const constant = 'constant' in currency ? currency.constant : ''
  return ({ texts }) => {
    const text = texts[amountAt] ?? ''
    if (text === '') return ''
    const code = texts[currencyAt] ?? constant
    if (code === '') return refuse('field_required', at('first_currency'))
    if (minorUnit(code) === undefined) return refuse('currency_unknown', at('first_currency'))
    const read = amount.unit === 'major' ? minorOf(text, code) : checkMinor(text)
    if ('reason' in read) return refuse(read.reason, at('first_amount'))
    const minor = Number(read.minor)
    if (minor < 0 || !Number.isSafeInteger(minor)) return refuse('field_range', at('first_amount'))
    return `"first_amount":${minor},"first_currency":"${code}"`
  }
}

function datePart(name: 'first_date' | 'agreed_on', column: OnFileColumns['first_date'], use: Use): Part {
  if (column === undefined) return NONE
  const place = use(column.from, at(`${name}.from`))
  const read = dateReader(column.form)
  return ({ texts }) => {
    const text = texts[place] ?? ''
    if (text === '') return ''
    const date = read(text)
    return date === undefined ? refuse('field_format', at(name)) : `"${name}":"${date}"`
  }
}

type Words = { from: string; words: Readonly<Record<string, string>> } | { constant: string }

function wordPart(name: 'agreement' | 'agreed_by', column: Words | undefined, use: Use): Part {
  if (column === undefined) return NONE
  if ('constant' in column) return () => `"${name}":"${column.constant}"`
  const place = use(column.from, at(`${name}.from`), true)
  const meanings = new Map(Object.entries(column.words))
  return ({ texts }) => {
    const text = texts[place] ?? ''
    if (text === '') return ''
    const meaning = meanings.get(text)
    return meaning === undefined ? refuse('field_value', at(name)) : `"${name}":"${meaning}"`
  }
}

function defaultPart(column: OnFileColumns['is_default'], use: Use): Part {
  if (column === undefined) return NONE
  const place = use(column.from, at('is_default.from'), true)
  if ('equals' in column) {
    const other = use(column.equals, at('is_default.equals'), true)
    return ({ texts }) => `"is_default":${texts[place] !== '' && texts[place] === texts[other]}`
  }
  const yes = new Set(column.yes)
  const no = new Set(column.no)
  return ({ texts }) => {
    const text = texts[place] ?? ''
    if (text === '') return ''
    return yes.has(text) || no.has(text) ? `"is_default":${yes.has(text)}` : refuse('field_value', at('is_default'))
  }
}
