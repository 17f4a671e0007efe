// Makes the row of a card that has no token yet, and changes the type and the status of a row. batch/order.ts decides
// which of several lines counts.
import { assert } from '../errors.ts'
import { type BatchLine, type ExpiryPolicy, firstMark } from './batch-order.ts'
import { isExpired } from './card.ts'
import { addType, type Given, isAnalytic } from './card-fields.ts'
import { follow, type StatusAndReason } from './lifecycle.ts'
import { firstGivers } from './newest.ts'
import type { Fingerprints, ThirdPartyName, TokenRow, TokenType } from './token.ts'
import { giverOf, type Moment } from './verdict.ts'

/** The facts about a card in a scope, after its number was hashed and its BIN looked up. */
export interface CardFacts {
  fingerprints: Fingerprints
  bin: string
  lastFour: string
  /** The effective brand: `card_brand` if given, else the detected brand. */
  brand: string | null
  binRange: number | null
  /** Required for a token of a type that includes analytics. */
  analyticsToken?: string
}

export interface CreateContext extends Moment {
  /** The id of the token, if this request makes one. */
  tokenId: string
  tokenScope: string
  /** Set if a third party made the token. */
  thirdParty?: ThirdPartyName | undefined
  /** The field that a refusal of the card names; default `body.encrypted_card`. */
  field?: string
  batch?: BatchLine
}

/** A create without a type makes a reuse token. */
function typeOf(given: Given): TokenType {
  return given.tokenType ?? 'REUSE'
}

export function newTokenRow(given: Given, card: CardFacts, context: CreateContext): TokenRow {
  const { now, batch } = context
  const tokenType = typeOf(given)
  const { status, suspendedReason } = initialStatus(given, batch)
  return {
    tokenId: context.tokenId,
    tokenScope: context.tokenScope,
    status,
    suspendedReason,
    tokenType,
    cards: card.fingerprints.kept,
    link: card.fingerprints,
    sealed: null,
    bin: card.bin,
    lastFour: card.lastFour,
    expiryMonth: given.expiryMonth ?? null,
    expiryYear: given.expiryYear ?? null,
    cardHolderName: given.cardHolderName ?? null,
    cardHolderEmail: given.cardHolderEmail ?? null,
    cardSequence: given.cardSequence ?? null,
    startMonth: given.startMonth ?? null,
    startYear: given.startYear ?? null,
    brand: card.brand,
    cardBrand: given.cardBrand ?? null,
    binRange: card.binRange,
    analyticsToken: isAnalytic(tokenType) ? analyticsTokenOf(card) : null,
    thirdParty: context.thirdParty ?? null,
    tokenExpiryDate: given.tokenExpiryDate ?? null,
    createdAt: now,
    updatedAt: now,
    version: 1,
    lastReceipt: context.receiptId,
    mark: batch ? firstMark(batch) : null,
    givenAt: batch?.onConflict === 'newest' ? firstGivers(given, giverOf(context)) : null,
  }
}

const LIVE: StatusAndReason = { status: 'ACTIVE', suspendedReason: null }
const PAST_ITS_DATE: StatusAndReason = { status: 'SUSPENDED', suspendedReason: 'CARD_EXPIRED' }

/** The status of a token that this request makes. */
export function initialStatus(given: Given, batch: ExpiryPolicy | undefined): StatusAndReason {
  return batch?.onExpired === 'suspend' && isExpired(given, batch.acceptedAt) ? PAST_ITS_DATE : LIVE
}

/** Adds the type that a create asks for; true if the row didn't have it. */
export function writeType(row: TokenRow, given: Given, card: CardFacts): boolean {
  const tokenType = addType(row.tokenType, typeOf(given))
  if (tokenType === row.tokenType) return false
  row.tokenType = tokenType
  if (isAnalytic(tokenType)) row.analyticsToken ??= analyticsTokenOf(card)
  return true
}

/**
 * Reactivates a token that was suspended because its date had passed, if a `token_expiry_date` is given; the caller has
 * refused a date that has passed. Returns true if the status has changed.
 */
export function renew(row: TokenRow, given: Given): boolean {
  if (given.tokenExpiryDate === undefined) return false
  const next = follow(row, 'RENEW')
  return typeof next === 'object' && setStatus(row, next)
}

export function setStatus(row: TokenRow, { status, suspendedReason }: StatusAndReason): boolean {
  if (row.status === status && row.suspendedReason === suspendedReason) return false
  row.status = status
  row.suspendedReason = suspendedReason
  return true
}

export function analyticsTokenOf(card: CardFacts): string {
  assert(card.analyticsToken !== undefined, 'a token for analytics is decided with its analytics token at hand')
  return card.analyticsToken
}
