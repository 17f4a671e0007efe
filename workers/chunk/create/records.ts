// The columns of a chunk's plain records, and which cards, names and references may stand in them.
import { isPrintable } from '../../../src/job/envelope/text.ts'
import { nameRefusal } from '../../../src/job/pan-in-names.ts'
import { Secret } from '../../../src/secret.ts'
import type { BinTable } from '../../../src/token/bin.ts'
import { detectBrand, isPossibleLength } from '../../../src/token/brand.ts'
import { type CardInput, isBlankName, monthOf, NAME_LENGTH_MAX, yearOf } from '../../../src/token/card.ts'
import type { Claim } from '../../../src/token/on-file.ts'
import { hasDigits, PAN_LENGTH, panFault } from '../../../src/token/pan.ts'
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
  /** Whether the record has a text that could look like a card of the chunk. */
  cardLike: boolean[]
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
    cardLike: [],
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
    cardLike: rest(records.cardLike),
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

/** A plain name is one that `checkCard` takes with any card: its digits are too few to be a card number. */
function isPlainName(name: string): boolean {
  return name.length <= NAME_LENGTH_MAX && isPrintable(name) && !hasDigits(name, PAN_LENGTH.least)
}

const REFERENCE_LENGTH_MAX = 128

/** Whether the reference passes the schema, and doesn't hold the number of this card; '' for a card that isn't known yet. */
export function isPlainReference(reference: string, pan: string): boolean {
  if (reference.length > REFERENCE_LENGTH_MAX || !isPrintable(reference)) return false
  if (!hasDigits(reference, PAN_LENGTH.least)) return true
  // A card that isn't known yet is never compared with the reference alone.
  return pan !== '' && nameRefusal({ reference }, [pan]) === undefined
}
