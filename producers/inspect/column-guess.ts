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
}

const FORMS = EXPIRY_FORMS.map(form => [form, expiryReader(form, undefined)] as const)
const NUMBER = /^\d[\d -]{10,30}\d$/
const EMAIL = /^[^\s@]+@[^\s@]+$/
const TLID = /^[A-Za-z0-9_-]{22}$/

/** Column names that providers use; values alone can't tell one id from another. */
const NAMES: readonly (readonly [Meaning, RegExp])[] = [
  ['transaction_link_id', /link.?id|tlid/i],
  ['network_transaction_id', /transaction.?ids?$|scheme.?ref|networktx/i],
  ['expiry_month', /month|exp\w*[._ -]mm?$/i],
  ['expiry_year', /year|exp\w*[._ -]y{1,4}$/i],
  ['expiry', /expir|^exp$|valid/i],
  ['first_name', /first.?name|given/i],
  ['last_name', /last.?name|surname|family/i],
  ['cardholder_name', /holder|owner|card.?name|^name$|name.?on/i],
  ['customer_id', /customer|shopper|buyer|account|client/i],
  ['card_id', /card.?id|payment.?(method|instrument).?id|card\.id|token|reference|detail/i],
  ['email', /e-?mail/i],
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
  if (named === undefined) return none
  if (named === 'expiry') return expiryGuess(none, given)
  return { ...none, meaning: named, sure: share(FITS[named] ?? (() => true)) }
}

const FITS: Partial<Record<Meaning, (value: string) => boolean>> = {
  expiry_month: value => readMonth(value.trim()) > 0,
  expiry_year: value => readDeclaredYear(value.trim()) > 0,
  email: value => EMAIL.test(value.trim()),
  transaction_link_id: value => TLID.test(value.trim()),
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
