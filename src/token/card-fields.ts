// The card fields that a request may give, and how each is stored in the token's row. A card field is a unit that is
// written as a whole, such as month and year of one date. batch/order.ts decides which of two lines of a batch counts.
import type { CardFieldName, TokenRow, TokenType } from './token.ts'

/** The fields that a request gave; absent fields stay as they are, and null clears a field. */
export interface Given {
  expiryMonth?: number
  expiryYear?: number
  cardHolderName?: string | null
  cardHolderEmail?: string | null
  cardSequence?: string
  startMonth?: number
  startYear?: number
  cardBrand?: string
  /** YYYY-MM-DD. */
  tokenExpiryDate?: string | null
  tokenType?: TokenType
}

interface CardField {
  /** Whether the request gives this field. */
  given(given: Given): boolean
  /** Whether the row has a value of this field. */
  held(row: TokenRow): boolean
  /** Whether the row already has the value that the request gives. */
  same(row: TokenRow, given: Given): boolean
  /** Writes the given value into the row. `brand`: the effective brand that follows from the given brand. */
  write(row: TokenRow, given: Given, brand: string | null): void
}

const stays = <T>(given: T | null | undefined, held: T | null) => given === undefined || given === held
const written = <T>(given: T | null | undefined, held: T | null) => (given === undefined ? held : given)

export const CARD_FIELDS: Readonly<Record<CardFieldName, CardField>> = {
  expiry: {
    given: given => given.expiryMonth !== undefined || given.expiryYear !== undefined,
    held: row => row.expiryMonth !== null || row.expiryYear !== null,
    same: (row, given) => stays(given.expiryMonth, row.expiryMonth) && stays(given.expiryYear, row.expiryYear),
    write(row, given) {
      row.expiryMonth = given.expiryMonth ?? row.expiryMonth
      row.expiryYear = given.expiryYear ?? row.expiryYear
    },
  },
  name: {
    given: given => given.cardHolderName !== undefined,
    held: row => row.cardHolderName !== null,
    same: (row, given) => stays(given.cardHolderName, row.cardHolderName),
    write(row, given) {
      row.cardHolderName = written(given.cardHolderName, row.cardHolderName)
    },
  },
  email: {
    given: given => given.cardHolderEmail !== undefined,
    held: row => row.cardHolderEmail !== null,
    same: (row, given) => stays(given.cardHolderEmail, row.cardHolderEmail),
    write(row, given) {
      row.cardHolderEmail = written(given.cardHolderEmail, row.cardHolderEmail)
    },
  },
  sequence: {
    given: given => given.cardSequence !== undefined,
    held: row => row.cardSequence !== null,
    same: (row, given) => stays(given.cardSequence, row.cardSequence),
    write(row, given) {
      row.cardSequence = given.cardSequence ?? row.cardSequence
    },
  },
  start: {
    given: given => given.startMonth !== undefined || given.startYear !== undefined,
    held: row => row.startMonth !== null || row.startYear !== null,
    same: (row, given) => stays(given.startMonth, row.startMonth) && stays(given.startYear, row.startYear),
    write(row, given) {
      row.startMonth = given.startMonth ?? row.startMonth
      row.startYear = given.startYear ?? row.startYear
    },
  },
  brand: {
    given: given => given.cardBrand !== undefined,
    held: row => row.cardBrand !== null,
    same: (row, given) => stays(given.cardBrand, row.cardBrand),
    write(row, given, brand) {
      row.cardBrand = given.cardBrand ?? row.cardBrand
      row.brand = brand
    },
  },
  tokenExpiry: {
    given: given => given.tokenExpiryDate !== undefined,
    held: row => row.tokenExpiryDate !== null,
    same: (row, given) => stays(given.tokenExpiryDate, row.tokenExpiryDate),
    write(row, given) {
      row.tokenExpiryDate = written(given.tokenExpiryDate, row.tokenExpiryDate)
    },
  },
}

export const CARD_FIELD_NAMES = Object.keys(CARD_FIELDS) as CardFieldName[]

/** Writes the given fields that `wins` permits and that differ from the row. Returns true if the row has changed. */
export function writeFields(
  row: TokenRow,
  given: Given,
  brand: string | null,
  wins: (name: CardFieldName) => boolean = () => true,
): boolean {
  let changed = false
  for (const name of CARD_FIELD_NAMES) {
    const field = CARD_FIELDS[name]
    if (!field.given(given) || !wins(name) || field.same(row, given)) continue
    field.write(row, given, brand)
    changed = true
  }
  return changed
}

export const isReusable = (type: TokenType) => type !== 'ANALYTICS'
export const isAnalytic = (type: TokenType) => type !== 'REUSE'

/** The type after a create: a request may add a type but never removes one. */
export function addType(held: TokenType, given: TokenType): TokenType {
  if (isReusable(held) || isReusable(given))
    return isAnalytic(held) || isAnalytic(given) ? 'REUSE_AND_ANALYTICS' : 'REUSE'
  return 'ANALYTICS'
}
