// Makes the cells of a row from the fields of a record, as a profile says. Nothing is repaired that the profile doesn't
// declare, and each repair is named. The values of the card are checked by workers.
import { NAME_LENGTH_MAX } from '../../../src/token/card.ts'
import { digitsOf, withoutPadding } from '../../../src/token/pan.ts'
import { readMonth } from '../expiry.ts'
import { type Expiry, expiryReader, readDeclaredYear } from './expiry-form.ts'
import { parseTemplate } from './field.ts'
import type { Profile } from './profile-schema.ts'

/** The repairs that a profile may declare, in the order in which rows list them. */
export const REPAIRS = [
  ...(['blanks', 'country_dropped', 'encoding', 'name_cut', 'name_dropped'] as const),
  ...(['number_padding', 'number_separators', 'postal_zeros'] as const),
] as const
export type Repair = (typeof REPAIRS)[number]

/**
 * Makes a value. `texts`: the fields by the numbers that `use` returned, without blanks around them; null words are
 * empty.
 */
type Make<T> = (texts: readonly string[], repairs: Set<Repair>) => T

/** Registers a field that must be read; returns its number. `path`: the member of the profile that names the field. */
export type Use = (field: string, path: string, compared?: boolean) => number

export function cleaner({ trim = false, null_words = [] }: Profile): (text: string, repairs?: Set<Repair>) => string {
  const words = new Set(null_words)
  return (text, repairs) => {
    const trimmed = trim ? text.trim() : text
    if (trimmed.length !== text.length) repairs?.add('blanks')
    return words.has(trimmed) ? '' : trimmed
  }
}

export function numberOf({ columns }: Profile, use: Use): Make<string> {
  const at = use(columns.card_number.from, 'columns.card_number.from')
  const { remove, padded = false } = columns.card_number
  const separators = new Set(remove)
  if (separators.size === 0 && !padded) return texts => texts[at] ?? ''
  return (texts, repairs) => {
    const given = texts[at] ?? ''
    const number = separators.size === 0 ? given : [...given].filter(character => !separators.has(character)).join('')
    if (number.length !== given.length) repairs.add('number_separators')
    if (!padded || !DIGITS.test(number)) return number
    const bare = withoutPadding(number)
    if (bare.length !== number.length) repairs.add('number_padding')
    return bare
  }
}

const DIGITS = /^\d+$/

/** The reference; '' if all fields of the template are empty, undefined if only some are. */
export function referenceOf(
  template: string | undefined,
  path: string,
  use: Use,
): (texts: readonly string[]) => string | undefined {
  if (template === undefined) return () => ''
  const { parts, after } = parseTemplate(template)
  const placed = parts.map(({ before, field, last4 }) => ({ before, last4, at: use(field, path) }))
  return texts => {
    let filled = ''
    let missing = 0
    for (const { before, at, last4 } of placed) {
      const given = texts[at] ?? ''
      const text = last4 ? lastFour(given) : given
      if (text === '') missing += 1
      filled += before + text
    }
    if (missing === placed.length) return ''
    return missing > 0 ? undefined : filled + after
  }
}

function lastFour(text: string): string {
  const digits = digitsOf(text)
  return digits.length < 4 ? '' : digits.slice(-4)
}

export interface ExpiryTexts {
  month: string
  year: string
}

const NO_EXPIRY: ExpiryTexts = { month: '', year: '' }
const textsOf = ({ month, year }: Expiry): ExpiryTexts => ({ month: String(month), year: String(year) })

/** The expiry; undefined for a date that can't be read, empty texts for a missing one. */
export function expiryOf(
  expiry: Profile['columns']['expiry'],
  use: Use,
): (texts: readonly string[]) => ExpiryTexts | undefined {
  if ('from' in expiry) {
    const at = use(expiry.from, 'columns.expiry.from')
    const read = expiryReader(expiry.form, expiry.pivot)
    return texts => {
      const text = texts[at] ?? ''
      const date = text === '' ? undefined : read(text)
      return text === '' ? NO_EXPIRY : date && textsOf(date)
    }
  }
  const monthAt = use(expiry.month, 'columns.expiry.month')
  const yearAt = use(expiry.year, 'columns.expiry.year')
  return texts => {
    const month = texts[monthAt] ?? ''
    const year = texts[yearAt] ?? ''
    if (month === '' && year === '') return NO_EXPIRY
    const date = { month: readMonth(month), year: readDeclaredYear(year, expiry.pivot) }
    return date.month === 0 || date.year === 0 ? undefined : textsOf(date)
  }
}

export function nameOf(holder: Profile['columns']['cardholder_name'], use: Use): Make<string> {
  if (holder === undefined) return () => ''
  const { from, too_long = 'reject' } = holder
  const places = from.map((field, index) => use(field, `columns.cardholder_name.from.${index}`))
  return (texts, repairs) => {
    const name = joinedName(texts, places)
    // If the name stays too long, the worker rejects it, as in any file.
    if (name.length <= NAME_LENGTH_MAX || too_long === 'reject') return name
    repairs.add(too_long === 'drop' ? 'name_dropped' : 'name_cut')
    return too_long === 'drop' ? '' : cutName(name)
  }
}

/** The parts of a name that aren't empty. */
export function joinedName(texts: readonly string[], places: readonly number[]): string {
  let name = ''
  for (const at of places) {
    const part = texts[at] ?? ''
    if (part !== '') name = name === '' ? part : `${name} ${part}`
  }
  return name
}

/** The name cut to the maximum, without splitting a character and without a blank at the end. */
function cutName(name: string): string {
  const cut = name.slice(0, NAME_LENGTH_MAX)
  return (/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut).trimEnd()
}

const OTHERS = ['sequence_number', 'card_brand', 'token_type', 'token_expiry_date'] as const

export function othersOf(columns: Profile['columns'], use: Use) {
  return OTHERS.flatMap(column => {
    const value = columns[column]
    if (value === undefined) return []
    if ('constant' in value) return [{ column, text: () => value.constant }]
    const at = use(value.from, `columns.${column}.from`)
    return [{ column, text: (texts: readonly string[]) => texts[at] ?? '' }]
  })
}

export function filterOf(where: NonNullable<Profile['where']>, use: Use): (texts: readonly string[]) => boolean {
  const filters = where.map(({ field, is, is_not }, index) => ({
    at: use(field, `where.${index}.field`, true),
    is: is && new Set(is),
    isNot: new Set(is_not),
  }))
  return texts =>
    filters.every(({ at, is, isNot }) => {
      const text = texts[at] ?? ''
      return is ? is.has(text) : !isNot.has(text)
    })
}
