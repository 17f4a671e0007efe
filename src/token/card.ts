// Parses a card: the plaintext of `encrypted_card`, or the clear `card` of a batch record. It checks the form, and of a
// capture that it is fresh; not whether the card is known, expired or of the stated brand. No refusal holds a value.
import { type Reason, type Refusal, refuse } from '../errors.ts'
import { countKeys } from '../json-keys.ts'
import { Secret } from '../secret.ts'
import { isFresh, parseUtc } from './capture-time.ts'
import { holdsPan, PADDED_LENGTH_MAX, panFault } from './pan.ts'

export interface CardInput {
  pan: Secret
  /** The month 1 to 12 and a four-digit year; both or neither. The same holds for the start date. */
  expiryMonth?: number
  expiryYear?: number
  cardHolderName?: string
  /** Up to three digits. */
  cardSequence?: string
  startMonth?: number
  startYear?: number
}

/** The members of a card, whose types aren't checked yet. */
interface RawCard {
  cardNumber?: unknown
  expiryMonth?: unknown
  expiryYear?: unknown
  cardholderName?: unknown
  sequenceNumber?: unknown
  startMonth?: unknown
  startYear?: unknown
}

const CAPTURE_FIELD = 'body.encrypted_card'
export const NAME_LENGTH_MAX = 30
const YEAR_LEAST = 1900
const DIGITS = /^[0-9]+$/

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses the plaintext of an `encrypted_card`. `acceptedAt`: ms since the epoch. Every refusal names
 * `body.encrypted_card`.
 */
export function parseCapture(plaintext: string | Uint8Array, at: { acceptedAt: number }): CardInput | Refusal {
  const tags = parseTags(plaintext)
  if (tags === undefined) return refuse('card_malformed', CAPTURE_FIELD)
  const { captureTime, cvv } = tags
  const capturedAt = typeof captureTime === 'string' ? parseUtc(captureTime) : undefined
  if (capturedAt === undefined) return refuse('capture_time_invalid', CAPTURE_FIELD)
  if (!isFresh(capturedAt, at.acceptedAt)) return refuse('capture_time_stale', CAPTURE_FIELD)
  // PCI DSS 3.3.1: the CVV is checked and dropped; a CardInput doesn't hold it.
  if (!isBlank(cvv) && !isCvv(cvv)) return refuse('cvv_format', CAPTURE_FIELD)
  return checkCard(tags, CAPTURE_FIELD)
}

/** What a capture says, whenever and however it was encrypted. */
export interface CardContent {
  /** Absent if it isn't one. */
  pan?: string | undefined
  /** The text by which two captures count as the same. It holds neither the time nor the CVV, nor members that nobody reads. */
  text: string
}

/** Undefined if the plaintext is no card. A card that is refused has a content, too: its refusal may be repeated. */
export function contentOf(plaintext: string | Uint8Array): CardContent | undefined {
  const tags = parseTags(plaintext)
  if (tags === undefined) return undefined
  const pan = panOf(tags.cardNumber)
  const month = (value: unknown) => monthOf(value) ?? value
  const year = (value: unknown) => yearOf(value) ?? value
  const members = [
    ...[pan ?? tags.cardNumber, month(tags.expiryMonth), year(tags.expiryYear), tags.cardholderName],
    ...[digitsOf(tags.sequenceNumber) ?? tags.sequenceNumber, month(tags.startMonth), year(tags.startYear)],
  ]
  return { pan, text: JSON.stringify(members.map(member => (isBlank(member) ? null : member))) }
}

/** The members of the JSON object; undefined if the text isn't an object, or if a member occurs twice. */
function parseTags(plaintext: string | Uint8Array): (RawCard & { captureTime?: unknown; cvv?: unknown }) | undefined {
  try {
    const text = typeof plaintext === 'string' ? plaintext : strictUtf8.decode(plaintext)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return countKeys(text) === Object.keys(value).length ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Checks the members of one card; a refusal names `field`. Months and years may be numbers or texts. Optional members
 * that are null or empty count as absent. But an empty expiry date is refused, because it shows that the sender's form
 * was incomplete.
 */
export function checkCard(raw: RawCard, field: string): CardInput | Refusal {
  const pan = panOf(raw.cardNumber)
  const fault = pan === undefined ? 'pan_format' : panFault(pan)
  if (pan === undefined || fault !== undefined) return refuse(fault ?? 'pan_format', field)
  const card: CardInput = { pan: new Secret(pan) }
  const { expiryMonth, expiryYear, startMonth, startYear, cardholderName, sequenceNumber } = raw
  if (expiryMonth !== undefined || expiryYear !== undefined) {
    const expiry = monthAndYearOf(expiryMonth, expiryYear)
    if (expiry === undefined) return refuse('expiry_format', field)
    card.expiryMonth = expiry.month
    card.expiryYear = expiry.year
  }
  if (!isBlank(startMonth) || !isBlank(startYear)) {
    const start = monthAndYearOf(startMonth, startYear)
    if (start === undefined) return refuse('card_malformed', field)
    card.startMonth = start.month
    card.startYear = start.year
  }
  if (!isBlankName(cardholderName)) {
    const wrong = nameFault(cardholderName, pan)
    if (wrong !== undefined) return refuse(wrong, field)
    card.cardHolderName = cardholderName as string
  }
  if (!isBlank(sequenceNumber)) {
    const sequence = digitsOf(sequenceNumber)
    if (sequence === undefined || sequence.length > 3) return refuse('card_malformed', field)
    card.cardSequence = sequence
  }
  return card
}

/** Whether a name says nothing: no name is stored for it. */
export function isBlankName(name: unknown): boolean {
  return isBlank(name) || (typeof name === 'string' && name.trim() === '')
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

// A JSON number above 2^53 may have lost digits in the parser.
function panOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.length <= PADDED_LENGTH_MAX ? value : undefined
  return Number.isSafeInteger(value) ? String(value) : undefined
}

function digitsOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined
  return typeof value === 'string' && DIGITS.test(value) ? value : undefined
}

function monthAndYearOf(givenMonth: unknown, givenYear: unknown): { month: number; year: number } | undefined {
  const month = monthOf(givenMonth)
  const year = yearOf(givenYear)
  return month === undefined || year === undefined ? undefined : { month, year }
}

/** The month 1 to 12; undefined for anything else. */
export function monthOf(value: unknown): number | undefined {
  const digits = digitsOf(value)
  if (digits === undefined || digits.length > 2) return undefined
  const month = Number(digits)
  return month >= 1 && month <= 12 ? month : undefined
}

/** The four-digit year. Undefined for anything but two digits, four digits from 1900 on, or a number of one digit. */
export function yearOf(value: unknown): number | undefined {
  const digits = digitsOf(value)
  if (digits === undefined) return undefined
  // The JSON number 5 means the year 05, which a client has converted to a number.
  if (digits.length === 2 || (typeof value === 'number' && digits.length === 1)) return 2000 + Number(digits)
  const year = Number(digits)
  return digits.length === 4 && year >= YEAR_LEAST ? year : undefined
}

function isCvv(value: unknown): boolean {
  const digits = digitsOf(value)
  return digits !== undefined && (digits.length === 3 || digits.length === 4)
}

function nameFault(name: unknown, pan: string): Reason | undefined {
  if (typeof name !== 'string') return 'card_malformed'
  if (name.length > NAME_LENGTH_MAX) return 'name_length'
  if (!isPlain(name)) return 'field_characters'
  // Names are stored in clear, so they must not hold the card number.
  return holdsPan(name, pan) ? 'card_malformed' : undefined
}

const CONTROLS = /[\p{Cc}\u2028\u2029]/u

function isPlain(text: string): boolean {
  return text.isWellFormed() && !CONTROLS.test(text)
}

/** Whether the last day of the card's expiry month, in UTC, lies before `at` (ms since the epoch). */
export function isExpired(card: { expiryMonth?: number; expiryYear?: number }, at: number): boolean {
  const { expiryMonth, expiryYear } = card
  return expiryMonth !== undefined && expiryYear !== undefined && at >= Date.UTC(expiryYear, expiryMonth, 1)
}
