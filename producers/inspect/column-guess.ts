// Guesses what a column of a file holds: from its values, or from its name if values can't decide. The certainty is the
// share of values that fit. No value is kept.
import { panFault, withoutPadding } from '../../src/token/pan.ts'
import { readMonth } from '../rows/expiry.ts'
import { EXPIRY_FORMS, type ExpiryForm, expiryReader, readDeclaredYear } from '../rows/profile/expiry-form.ts'
import { isSecurityCode } from '../rows/security-code.ts'

export const MEANINGS = [
  ...(['card_number', 'expiry', 'expiry_month', 'expiry_year', 'cardholder_name', 'first_name', 'last_name'] as const),
  ...(['card_id', 'customer_id', 'email', 'network_transaction_id', 'transaction_link_id', 'security_code'] as const),
] as const
export type Meaning = (typeof MEANINGS)[number]

export interface ColumnGuess {
  name: string
  /** Undefined if no record needs what the column holds. */
  meaning: Meaning | undefined
  /** The share of the column's values that have this form, from 0 to 1. */
  sure: number
  /** How many of the examined rows have a value in the column. */
  filled: number
  /** For an expiry date: how many values can be read in each form. */
  forms?: Partial<Record<ExpiryForm, number>>
  /** For an expiry date: how many values can be read both as MMYY and as YYMM. */
  ambiguous?: number
  /** For a card number: how many values have separators. */
  separated?: number
  /** Whether all values differ, and there are several; absent for columns that can't name a row. */
  unique?: true
}

const FORMS = EXPIRY_FORMS.map(form => [form, expiryReader(form, undefined)] as const)
const NUMBER = /^\d[\d -]{10,30}\d$/
const EMAIL = /^[^\s@]+@[^\s@]+$/
const TLID = /^[A-Za-z0-9_-]{22}$/

/** Column names that providers use, in several languages; values alone can't tell one id from another. */
const NAMES: readonly (readonly [Meaning, RegExp])[] = [
  ['transaction_link_id', /link.?id|tlid/i],
  ['network_transaction_id', /transaction.?ids?$|scheme.?ref|networktx/i],
  ['expiry_month', /month|monat|^mois|mois$|^mes\b|\bmes$|^mese|mese$|maand|^mês|\bmês$|月$|месяц|exp\w*[._ -]mm?$/i],
  ['expiry_year', /year|jahr|année|annee|\baño|^ano\b|\bano$|^anno|anno$|jaar|年$|^год|год$|exp\w*[._ -]y{1,4}$/i],
  [
    'expiry',
    /expir|^exp$|valid|gültig|gueltig|ablauf|verfall|échéance|echeance|caduc|vencim|^vence|vigencia|scaden|verval|geldig|ważn|срок|有効期限|有效期/i,
  ],
  ['first_name', /first.?name|given|vorname|prénom|prenom|primer.?nombre|voornaam|имя/i],
  [
    'last_name',
    /last.?name|surname|family|nachname|familienname|nom.?de.?famille|apellido|cognome|sobrenome|achternaam|фамилия/i,
  ],
  [
    'cardholder_name',
    /holder|owner|card.?name|^name$|name.?on|inhaber|titulaire|titular|titolare|intestatario|portador|houder|^(?:nom|nombre|nome|naam)$|держатель|владелец|名義|持卡人/i,
  ],
  ['customer_id', /customer|shopper|buyer|account|client|kunde|käufer|acheteur|comprador|klant|клиент|顧客|客户/i],
  [
    'card_id',
    /card.?id|karten.?id|payment.?(method|instrument).?id|card\.id|token|reference|referenz|référence|referencia|referência|riferimento|detail/i,
  ],
  ['email', /e-?mail|courriel|correo/i],
]

export function guessColumn(name: string, values: readonly string[]): ColumnGuess {
  const given = values.filter(value => value.trim() !== '')
  const none: ColumnGuess = { name, meaning: undefined, sure: 0, filled: given.length }
  if (isSecurityCode(name)) return { ...none, meaning: 'security_code', sure: 1 }
  if (given.length === 0) return none
  const share = (fits: (value: string) => boolean) => given.filter(fits).length / given.length
  const numbers = share(isNumber)
  if (numbers >= 0.5) {
    const separated = given.filter(value => isNumber(value) && /\D/.test(value)).length
    return { ...none, meaning: 'card_number', sure: numbers, separated }
  }
  const named = NAMES.find(([, form]) => form.test(name))?.[0]
  if (named === 'expiry' || (named === undefined && share(isDate) >= DATES_LEAST)) return expiryGuess(none, given)
  const unique = given.length > 1 && new Set(given).size === given.length ? ({ unique: true } as const) : {}
  if (named === undefined) return { ...none, ...unique }
  if (named === 'customer_id') return { ...none, ...unique, meaning: named, sure: 1 }
  return { ...none, meaning: named, sure: share(FITS[named] ?? (() => true)) }
}

const FITS: Partial<Record<Meaning, (value: string) => boolean>> = {
  expiry_month: value => readMonth(value.trim()) > 0,
  expiry_year: value => readDeclaredYear(value.trim()) > 0,
  email: value => EMAIL.test(value.trim()),
  transaction_link_id: value => TLID.test(value.trim()),
}

/** Such a column holds dates whatever it is called. Four digits could be anything. */
const DATES_LEAST = 0.9
const BY_VALUE = FORMS.filter(([form]) => form !== 'MMYY' && form !== 'YYMM')

function isDate(value: string): boolean {
  return BY_VALUE.some(([, read]) => {
    const date = read(value.trim())
    return date !== undefined && date.year >= 2000 && date.year < 2100
  })
}

function isNumber(value: string): boolean {
  const text = value.trim()
  return NUMBER.test(text) && panFault(withoutPadding(text.replace(/[ -]/g, ''))) === undefined
}

function expiryGuess(none: ColumnGuess, given: readonly string[]): ColumnGuess {
  const forms: Partial<Record<ExpiryForm, number>> = {}
  let ambiguous = 0
  for (const value of given) {
    const fitting = FORMS.flatMap(([form, read]) => (read(value.trim()) ? [form] : []))
    for (const form of fitting) forms[form] = (forms[form] ?? 0) + 1
    if (fitting.includes('MMYY') && fitting.includes('YYMM')) ambiguous += 1
  }
  const most = Math.max(0, ...Object.values(forms))
  return { ...none, meaning: 'expiry', sure: most / given.length, forms, ambiguous }
}

/** If more than this share of the values can be read in two forms, the sender must say which form it is. */
export const AMBIGUOUS_MAX = 0.05

/**
 * The form that reads the most values. Undefined if no form reads any, if two forms read equally many, or if too many
 * values can be both MMYY and YYMM.
 */
export function settledForm({ forms = {}, ambiguous = 0, filled }: ColumnGuess): ExpiryForm | undefined {
  const [first, second] = Object.entries(forms).sort(([, a], [, b]) => b - a) as [ExpiryForm, number][]
  if (first === undefined) return undefined
  const isFour = first[0] === 'MMYY' || first[0] === 'YYMM'
  if (isFour && ambiguous > AMBIGUOUS_MAX * filled) return undefined
  return second !== undefined && second[1] === first[1] ? undefined : first[0]
}
