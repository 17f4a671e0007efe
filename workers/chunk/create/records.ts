// The columns of a chunk's plain records, and which cards, names and references may stand in them.

import { z } from 'zod'
import { isRefusal } from '../../../src/errors.ts'
import { BRAND_NAME, isPrintable } from '../../../src/job/envelope/text.ts'
import { nameRefusal } from '../../../src/job/pan-in-names.ts'
import { Secret } from '../../../src/secret.ts'
import type { BinTable } from '../../../src/token/bin.ts'
import { checkBrand, detectBrand, isPossibleLength } from '../../../src/token/brand.ts'
import { type CardInput, isBlankName, monthOf, NAME_LENGTH_MAX, yearOf } from '../../../src/token/card.ts'
import type { Given } from '../../../src/token/card-fields.ts'
import type { Claim } from '../../../src/token/on-file.ts'
import { hasDigits, PAN_LENGTH, panFault } from '../../../src/token/pan.ts'
import type { Giver } from '../../../src/token/token.ts'
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
  /** Of the expiry date; 0 for none. */
  months: number[]
  /** Of four digits; 0 for none. */
  years: number[]
  names: (string | null)[]
  brands: (string | null)[]
  binRanges: (number | null)[]
  /** What only some records give; undefined for the others. */
  more: (MoreOfCard | undefined)[]
  /** For whom the card is on file; undefined for records that don't say. */
  claims: (Claim | undefined)[]
  /** Who gives the data of each record; empty unless the batch has `newest`. */
  givers: Giver[]
  /**
   * The texts about the owner that could look like a card of the chunk; undefined if neither one of them nor the reference
   * could.
   */
  cardLike: (readonly string[] | undefined)[]
}

/** A record whose card is still encrypted, as JWE. */
export interface SealedRecord {
  /** Its place in the columns. */
  place: number
  encryptedCard: string
  /** The alias of the capture key. */
  alias: string
}

/** What a record may give beside number, expiry date and name. */
export type MoreOfCard = Pick<
  Given,
  'cardSequence' | 'startMonth' | 'startYear' | 'cardBrand' | 'tokenType' | 'tokenExpiryDate'
>

/** A card that may stand in columns. */
export interface PlainCard {
  pan: string
  month: number
  year: number
  name: string | null
  brand: string | null
  binRange: number | null
  more: MoreOfCard | undefined
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
    more: [],
    claims: [],
    givers: [],
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
  records.more[place] = card.more
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
    more: rest(records.more),
    claims: rest(records.claims),
    givers: rest(records.givers),
    cardLike: rest(records.cardLike),
  }
}

/** What cards are read with. */
export interface CardRules {
  bins: BinTable
  localSchemes: readonly string[]
}

interface Members {
  [name: string]: unknown
}

/**
 * The card of these members, whose types aren't checked yet, and what the request gives beside it; undefined for one that
 * mustn't stand in columns.
 */
export function clearCardOf(card: Members, request: Members, rules: CardRules): PlainCard | undefined {
  const { cardNumber: pan, expiryMonth, expiryYear, cardholderName: name = '' } = card
  if (typeof pan !== 'string' || panFault(pan) !== undefined || typeof name !== 'string') return undefined
  const expiry = expiryMonth === undefined && expiryYear === undefined ? NO_DATE : dateOf(expiryMonth, expiryYear)
  const more = moreOf(card, request)
  return expiry && more && plainCardOf({ pan, ...expiry, name, more: more === NOTHING ? undefined : more }, rules)
}

/** The same for a card that was encrypted, and was checked when it was opened. */
export function openedCardOf(card: CardInput, rules: CardRules): PlainCard | undefined {
  const { pan, expiryMonth: month = 0, expiryYear: year = 0, cardHolderName: name = '' } = card
  const { cardSequence, startMonth, startYear } = card
  const hasMore = cardSequence !== undefined || startMonth !== undefined
  const more: MoreOfCard = {
    ...(cardSequence !== undefined && { cardSequence }),
    ...(startMonth !== undefined && startYear !== undefined && { startMonth, startYear }),
  }
  return plainCardOf({ pan: pan.reveal(), month, year, name, more: hasMore ? more : undefined }, rules)
}

const NO_DATE = { month: 0, year: 0 }

function dateOf(givenMonth: unknown, givenYear: unknown): { month: number; year: number } | undefined {
  const month = monthOf(givenMonth)
  const year = yearOf(givenYear)
  return month === undefined || year === undefined ? undefined : { month, year }
}

const NOTHING: MoreOfCard = {}
const SEQUENCE = /^\d{1,3}$/
const DATE = z.regexes.date

/** `NOTHING` if nothing more is given; undefined for what mustn't stand in columns. */
function moreOf(card: Members, request: Members): MoreOfCard | undefined {
  const ofCard = moreOfCard(card)
  const ofToken = moreOfToken(request)
  if (!ofCard || !ofToken) return undefined
  return ofCard === NOTHING ? ofToken : { ...ofCard, ...ofToken }
}

function moreOfCard({ sequenceNumber, startMonth, startYear }: Members): MoreOfCard | undefined {
  let more = NOTHING
  if (sequenceNumber !== undefined) {
    const cardSequence = typeof sequenceNumber === 'number' ? String(sequenceNumber) : sequenceNumber
    if (typeof cardSequence !== 'string' || !SEQUENCE.test(cardSequence)) return undefined
    more = { ...more, cardSequence }
  }
  if (startMonth === undefined && startYear === undefined) return more
  const start = dateOf(startMonth, startYear)
  return start && { ...more, startMonth: start.month, startYear: start.year }
}

function moreOfToken(request: Members): MoreOfCard | undefined {
  const { card_brand: cardBrand, token_type: tokenType, token_expiry_date: tokenExpiryDate } = request
  let more = NOTHING
  if (cardBrand !== undefined) {
    if (typeof cardBrand !== 'string' || !BRAND_NAME.test(cardBrand)) return undefined
    more = { ...more, cardBrand }
  }
  if (tokenType !== undefined) {
    if (tokenType !== 'REUSE') return undefined
    more = { ...more, tokenType }
  }
  if (tokenExpiryDate === undefined) return more
  return typeof tokenExpiryDate === 'string' && DATE.test(tokenExpiryDate) ? { ...more, tokenExpiryDate } : undefined
}

function plainCardOf(
  { pan, month, year, name, more }: Pick<PlainCard, 'pan' | 'month' | 'year' | 'more'> & { name: string },
  { bins, localSchemes }: CardRules,
): PlainCard | undefined {
  if (!isPlainName(name)) return undefined
  const detected = detectBrand(pan)
  if (!isPossibleLength(pan, detected)) return undefined
  const range = bins.find(pan)
  const stated = more?.cardBrand
  const brand =
    stated === undefined ? knownBrand(detected, range) : checkBrand(stated, detected ?? range?.brand, localSchemes)
  if (isRefusal(brand)) return undefined
  const shown = { name: isBlankName(name) ? null : name, brand: brand ?? null, binRange: range?.id ?? null }
  return { pan, month, year, more, ...shown }
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
