// The columns of a chunk's plain records, and which cards, names and references may stand in them.
import { Secret } from '../../../src/secret.ts'
import type { BinTable } from '../../../src/token/bin.ts'
import { detectBrand, isPossibleLength } from '../../../src/token/brand.ts'
import { type CardInput, isBlankName, monthOf, NAME_LENGTH_MAX, yearOf } from '../../../src/token/card.ts'
import type { Claim } from '../../../src/token/on-file.ts'
import { PAN_LENGTH, panFault } from '../../../src/token/pan.ts'
import { knownBrand } from '../../card/card-facts.ts'

/** The field that a refusal of a record's card names. */
export type CardField = 'body.card' | 'body.encrypted_card'

/** Values at the same place in each column belong to the same record. */
export interface PlainRecords {
  /** The line numbers of the records, in growing order. */
  lines: number[]
  references: (string | undefined)[]
  fields: CardField[]
  pans: Secret<string[]>
  months: number[]
  years: number[]
  names: (string | null)[]
  brands: (string | null)[]
  binRanges: (number | null)[]
  /** For whom the card is on file; undefined for records that don't say. */
  claims: (Claim | undefined)[]
}

/** A record whose card is still encrypted, as JWE. */
export interface SealedRecord {
  /** Its place in the columns. */
  place: number
  encryptedCard: string
  /** The alias of the capture key. */
  alias: string
}

/** A card that may stand in columns. */
export interface PlainCard {
  pan: string
  month: number
  year: number
  name: string | null
  brand: string | null
  binRange: number | null
}

export function openRecords(): PlainRecords {
  return {
    lines: [],
    references: [],
    fields: [],
    pans: new Secret<string[]>([]),
    months: [],
    years: [],
    names: [],
    brands: [],
    binRanges: [],
    claims: [],
  }
}

/** Puts a card at a place of the columns. */
export function putCard(records: PlainRecords, place: number, card: PlainCard): void {
  records.pans.reveal()[place] = card.pan
  records.months[place] = card.month
  records.years[place] = card.year
  records.names[place] = card.name
  records.brands[place] = card.brand
  records.binRanges[place] = card.binRange
}

/** The records without those at some places. */
export function withoutPlaces(records: PlainRecords, places: ReadonlySet<number>): PlainRecords {
  const rest = <T>(column: readonly T[]): T[] => column.filter((_, place) => !places.has(place))
  return {
    lines: rest(records.lines),
    references: rest(records.references),
    fields: rest(records.fields),
    pans: new Secret(rest(records.pans.reveal())),
    months: rest(records.months),
    years: rest(records.years),
    names: rest(records.names),
    brands: rest(records.brands),
    binRanges: rest(records.binRanges),
    claims: rest(records.claims),
  }
}

/** The card of these members, whose types aren't checked yet; undefined for one that mustn't stand in columns. */
export function clearCardOf(
  { cardNumber: pan, expiryMonth, expiryYear, cardholderName: name = '' }: { [name: string]: unknown },
  bins: BinTable,
): PlainCard | undefined {
  if (typeof pan !== 'string' || panFault(pan) !== undefined) return undefined
  const month = monthOf(expiryMonth)
  const year = yearOf(expiryYear)
  if (month === undefined || year === undefined || typeof name !== 'string') return undefined
  return plainCardOf({ pan, month, year, name }, bins)
}

/** The same for a card that was encrypted, and was checked when it was opened. */
export function openedCardOf(card: CardInput, bins: BinTable): PlainCard | undefined {
  const { pan, expiryMonth: month, expiryYear: year, cardHolderName: name = '', cardSequence, startMonth } = card
  if (cardSequence !== undefined || startMonth !== undefined) return undefined
  if (month === undefined || year === undefined) return undefined
  return plainCardOf({ pan: pan.reveal(), month, year, name }, bins)
}

function plainCardOf(
  { pan, month, year, name }: Pick<PlainCard, 'pan' | 'month' | 'year'> & { name: string },
  bins: BinTable,
): PlainCard | undefined {
  if (!isPlainName(name)) return undefined
  const detected = detectBrand(pan)
  if (!isPossibleLength(pan, detected)) return undefined
  const range = bins.find(pan)
  const brand = knownBrand(detected, range) ?? null
  return { pan, month, year, name: isBlankName(name) ? null : name, brand, binRange: range?.id ?? null }
}

/**
 * A range of Latin letters, most of them with accents. Unicode's normal forms change none of its characters into a
 * digit.
 */
const LATIN = { first: 0xc0, last: 0x24f }

/**
 * Whether the name isn't too long, and has no digits, no control characters and no characters beyond ASCII and `LATIN`.
 */
function isPlainName(name: string): boolean {
  if (name.length > NAME_LENGTH_MAX) return false
  for (let index = 0; index < name.length; index += 1) {
    const code = name.charCodeAt(index)
    if (code < 0x20 || isDigit(code)) return false
    if (code > 0x7e && (code < LATIN.first || code > LATIN.last)) return false
  }
  return true
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

const REFERENCE_LENGTH_MAX = 128

/**
 * Whether the reference is printable ASCII that JSON doesn't escape, with too few digits for a card number: then no rule about
 * references could refuse it.
 */
export function isPlainReference(reference: string): boolean {
  if (reference.length > REFERENCE_LENGTH_MAX) return false
  let digits = 0
  for (let index = 0; index < reference.length; index += 1) {
    const code = reference.charCodeAt(index)
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false
    if (isDigit(code)) digits += 1
  }
  return digits < PAN_LENGTH.least
}
