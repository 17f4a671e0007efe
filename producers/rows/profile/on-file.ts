// Makes `on_file` of a record, as a profile says, written straight as JSON as the whole record is. Ids, names and addresses
// stay as they are given: what a profile doesn't declare isn't repaired.
import { isRefusal, type Reason, type Refusal, refuse } from '../../../src/errors.ts'
import { checkMinor, minorOf } from '../../../src/token/amount.ts'
import { minorUnit } from '../../../src/token/currency.ts'
import { isUsualLinkId } from '../../../src/token/on-file.ts'
import { digitsOf, hasDigits, holdsPan, PAN_LENGTH, withoutPadding } from '../../../src/token/pan.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { dateReader } from '../date-form.ts'
import type { OnFileTrait } from '../file-outcome.ts'
import { quoted, type RowOwner } from '../record.ts'
import { joinedName, type Repair, referenceOf, type Use } from './cells.ts'
import type { OnFileColumns } from './on-file-schema.ts'
import { LIST_SEPARATOR } from './records.ts'

export interface OnFileText {
  /** A JSON object. */
  json: string
  traits: readonly OnFileTrait[]
  /** Those of its texts that could be a card number. */
  cardLike: readonly string[]
}

/** Undefined for a row without an owner: one that has no id of its card. */
export type MakeOnFile = (
  texts: readonly string[],
  repairs: Set<Repair>,
  pan: string,
) => OnFileText | Refusal | undefined

type Clean = (text: string, repairs?: Set<Repair>) => string

const ID_MAX = 128
const NAME_MAX = 256
const NETWORK_ID_MAX = 64
const NETWORK_IDS_MAX = 50

export function onFileOf(columns: OnFileColumns, use: Use, clean: Clean): MakeOnFile {
  const cardId = referenceOf(columns.card_id, at('card_id'), use)
  const networkIds = networkIdsPart(columns.network_transaction_ids, use, clean)
  const linkAt = columns.transaction_link_id && use(columns.transaction_link_id.from, at('transaction_link_id.from'))
  const linkId = (texts: readonly string[]) => (linkAt === undefined ? '' : (texts[linkAt] ?? ''))
  const parts = [
    accountPart(columns.provider_account, use),
    customerPart(columns.customer_id, use),
    namePart(columns.cardholder_name, use),
    idPart('transaction_link_id', NETWORK_ID_MAX, ({ texts }) => linkId(texts)),
    ...agreementParts(columns, use),
    addressPart(columns.billing_address, use),
  ]
  const start = `{"provider":"${columns.provider}",`
  return (texts, repairs, pan) => {
    const id = cardId(texts)
    if (id === '') return undefined
    if (id === undefined) return refuse('field_required', at('card_id'))
    const row = { texts, repairs, number: ownNumber(pan), cardLike: [] }
    const network = networkIds(row)
    if (isRefusal(network)) return network
    const named = idMember('card_id', ID_MAX, id, row)
    if (isRefusal(named)) return named
    const members = joined(parts, row)
    if (isRefusal(members)) return members
    const json = `${start}${network === '' ? '' : `${network},`}${named}${members === '' ? '' : `,${members}`}}`
    return { json, traits: traitsOf(network !== '', linkId(texts)), cardLike: row.cardLike }
  }
}

/**
 * Reads only the owner of a row's card, without the other members of `on_file`: rows that are rejected or skipped have
 * an owner, too.
 */
export function rowOwnerOf(columns: OnFileColumns, use: Use): (texts: readonly string[]) => RowOwner {
  const { provider, provider_account: account } = columns
  const cardIdOf = referenceOf(columns.card_id, 'on_file.card_id', use)
  const customerIdOf = referenceOf(columns.customer_id, 'on_file.customer_id', use)
  const accountAt = account && 'from' in account ? use(account.from, 'on_file.provider_account.from') : -1
  const constant = account && 'constant' in account ? account.constant : ''
  return texts => {
    const cardId = cardIdOf(texts)
    const customerId = customerIdOf(texts)
    if (cardId === '') return 'none'
    if (cardId === undefined || customerId === undefined) return 'unknown'
    return { provider, providerAccount: texts[accountAt] ?? constant, customerId, cardId }
  }
}

/** The digits of a number that can be one. */
function ownNumber(pan: string): string {
  const digits = withoutPadding(digitsOf(pan))
  return digits.length >= PAN_LENGTH.least && digits.length <= PAN_LENGTH.most ? digits : ''
}

function accountPart(column: OnFileColumns['provider_account'], use: Use): Part {
  if (column === undefined) return () => ''
  if ('constant' in column) return textPart('provider_account', ID_MAX, () => column.constant)
  const place = use(column.from, at('provider_account.from'))
  return textPart('provider_account', ID_MAX, ({ texts }) => texts[place] ?? '')
}

function customerPart(template: string | undefined, use: Use): Part {
  const customerId = referenceOf(template, at('customer_id'), use)
  return row => {
    const id = customerId(row.texts)
    return id === undefined ? refuse('field_required', at('customer_id')) : textMember('customer_id', ID_MAX, id, row)
  }
}

function namePart(column: OnFileColumns['cardholder_name'], use: Use): Part {
  const places = (column?.from ?? []).map((field, index) => use(field, at(`cardholder_name.from.${index}`)))
  return textPart('cardholder_name', NAME_MAX, ({ texts }) => joinedName(texts, places))
}

function networkIdsPart(column: OnFileColumns['network_transaction_ids'], use: Use, clean: Clean): Part {
  if (column === undefined) return () => ''
  const { from, separator } = column
  const place = use(from, at('network_transaction_ids.from'))
  const name = 'network_transaction_ids'
  return row => {
    const text = row.texts[place] ?? ''
    if (text === '') return ''
    const texts = text.split(LIST_SEPARATOR).flatMap(one => (separator === undefined ? one : one.split(separator)))
    const ids = texts.length === 1 ? texts : texts.map(one => clean(one, row.repairs))
    const given = ids.filter(id => id !== '')
    if (given.length > NETWORK_IDS_MAX) return refuse('field_length', at(name))
    const values: string[] = []
    for (const id of given) {
      const value = textValue(id, NETWORK_ID_MAX, row)
      if (typeof value !== 'string') return refuse(value.reason, at(name))
      values.push(value)
    }
    return values.length === 0 ? '' : `"${name}":[${values.join(',')}]`
  }
}

const TRAITS: Record<'none' | 'usual' | 'unusual', readonly OnFileTrait[]> = {
  none: [],
  usual: ['tlid'],
  unusual: ['tlid', 'tlid_unusual'],
}
const WITH_NTI: typeof TRAITS = {
  none: ['nti'],
  usual: ['nti', 'tlid'],
  unusual: ['nti', 'tlid', 'tlid_unusual'],
}

function traitsOf(hasNetworkIds: boolean, linkId: string): readonly OnFileTrait[] {
  const link = linkId === '' ? 'none' : isUsualLinkId(linkId) ? 'usual' : 'unusual'
  return hasNetworkIds ? WITH_NTI[link] : TRAITS[link]
}

/**
 * What the cardholder agreed to, and the first authorisation under it: words, dates and an amount, each of a declared
 * form. A text that doesn't have it rejects its row.
 */
function agreementParts(columns: OnFileColumns, use: Use): Part[] {
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

type AddressColumns = NonNullable<OnFileColumns['billing_address']>

const ADDRESS_LINES = [
  ['line1', 256],
  ['line2', 256],
  ['city', 128],
  ['state', 128],
] as const
const POSTAL_CODE_MAX = 32

/** The billing address of a row. Workers store it only in a token scope with `--keep-billing`. */
function addressPart(columns: AddressColumns | undefined, use: Use): Part {
  if (columns === undefined) return () => ''
  const lines = ADDRESS_LINES.flatMap(([name, most]) => {
    const field = columns[name]
    if (field === undefined) return []
    const place = use(field, addressField(name))
    return [textPart(name, most, ({ texts }) => texts[place] ?? '')]
  })
  const parts = [...lines, postalCodePart(columns.postal_code, use), countryPart(columns.country, use)]
  return row => {
    const members = joined(parts, row)
    return isRefusal(members) || members === '' ? members : `"billing_address":{${members}}`
  }
}

const addressField = (name: string) => at(`billing_address.${name}`)

/** A spreadsheet takes the zeros off codes such as 01234. */
function postalCodePart(column: AddressColumns['postal_code'], use: Use): Part {
  if (column === undefined) return () => ''
  const { length = 0 } = column
  const place = use(column.from, addressField('postal_code.from'))
  return textPart('postal_code', POSTAL_CODE_MAX, ({ texts, repairs }) => {
    const text = texts[place] ?? ''
    if (text.length >= length || !/^\d+$/.test(text)) return text
    repairs.add('postal_zeros')
    return text.padStart(length, '0')
  })
}

function countryPart(column: AddressColumns['country'], use: Use): Part {
  if (column === undefined) return () => ''
  const place = use(column.from, addressField('country.from'))
  return ({ texts, repairs }) => {
    const text = texts[place] ?? ''
    if (text === '') return ''
    if (/^[A-Z]{2}$/.test(text)) return `"country":"${text}"`
    if (column.other !== 'drop') return refuse('field_format', addressField('country'))
    repairs.add('country_dropped')
    return ''
  }
}

/** A row of the file as a part of it is made. */
interface Given {
  /** The fields by the numbers that `use` gave them. */
  texts: readonly string[]
  repairs: Set<Repair>
  /** The digits of the row's card number; '' if the text can't be a card number. */
  number: string
  /** The texts so far that could be a card number. */
  cardLike: string[]
}

/** `"name":value`, or several of them; '' for none. */
type Part = (row: Given) => string | Refusal

const at = (path: string) => `on_file.${path}`

/** The members of all parts, or the first refusal. */
function joined(parts: readonly Part[], row: Given): string | Refusal {
  let members = ''
  for (const part of parts) {
    const made = part(row)
    if (isRefusal(made)) return made
    if (made !== '') members = members === '' ? made : `${members},${made}`
  }
  return members
}

/** A text that is no id of a provider's or a network's may hold no possible card number. `most`: in UTF-16 units. */
function textPart(name: string, most: number, textOf: (row: Given) => string): Part {
  return row => textMember(name, most, textOf(row), row)
}

function textMember(name: string, most: number, text: string, row: Given): string | Refusal {
  return holdsPossiblePan(text) ? refuse('reference_pan', at(name)) : idMember(name, most, text, row)
}

/** An id may be a long number. `most`: in UTF-16 units. */
function idPart(name: string, most: number, textOf: (row: Given) => string): Part {
  return row => idMember(name, most, textOf(row), row)
}

function idMember(name: string, most: number, text: string, row: Given): string | Refusal {
  if (text === '') return ''
  const value = textValue(text, most, row)
  return typeof value === 'string' ? `"${name}":${value}` : refuse(value.reason, at(name))
}

/** A text in JSON. None may hold the card number of its row; it is compared with the others of its chunk later. */
function textValue(text: string, most: number, { number, cardLike }: Given): string | { reason: Reason } {
  if (text.length > most) return { reason: 'field_length' }
  // Most texts have too few digits for a card number.
  if (hasDigits(text, PAN_LENGTH.least)) {
    if (number !== '' && holdsPan(text, number)) return { reason: 'reference_pan' }
    if (couldLookLikeCard(text)) cardLike.push(text)
  }
  return quoted(text) ?? { reason: 'field_characters' }
}
