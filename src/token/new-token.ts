// The row of a card that has no token yet, and what a request does to a row beside its fields: its type, its status.
// Which of several requests stands isn't asked here.
import { assert } from '../errors.ts'
import { type BatchLine, firstMark } from './batch-order.ts'
import { isExpired } from './card.ts'
import { addType, type Given, isAnalytic } from './card-fields.ts'
import { follow, type Standing } from './lifecycle.ts'
import type { ThirdPartyName, TokenRow, TokenType } from './token.ts'
import type { Moment } from './verdict.ts'

/** What is known of a card within a scope once its number has been hashed and looked up. */
export interface CardFacts {
  fingerprint: Buffer
  bin: string
  lastFour: string
  /** The effective brand: what `card_brand` says if that was given, else the detected one. */
  brand: string | null
  binRange: number | null
  /** Needed wherever the token is to be one for analytics. */
  analyticsToken?: string
}

export interface CreateContext extends Moment {
  /** For a token that isn't there yet. */
  tokenId: string
  tokenScope: string
  /** For a token that a third party has made. */
  thirdParty?: ThirdPartyName | undefined
  /** What a refusal of the card names; `body.encrypted_card` unless said otherwise. */
  field?: string
  batch?: BatchLine
}

/** What a create is taken for where it doesn't say. */
function typeOf(given: Given): TokenType {
  return given.tokenType ?? 'REUSE'
}

export function freshRow(given: Given, card: CardFacts, context: CreateContext): TokenRow {
  const { now, batch } = context
  const tokenType = typeOf(given)
  const { status, suspendedReason } = firstStanding(given, batch)
  return {
    tokenId: context.tokenId,
    tokenScope: context.tokenScope,
    status,
    suspendedReason,
    tokenType,
    fingerprint: card.fingerprint,
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
  }
}

const LIVE: Standing = { status: 'ACTIVE', suspendedReason: null }
const PAST_ITS_DATE: Standing = { status: 'SUSPENDED', suspendedReason: 'CARD_EXPIRED' }

/** How a token begins that this request makes. */
export function firstStanding(given: Given, batch: BatchLine | undefined): Standing {
  return batch?.onExpired === 'suspend' && isExpired(given, batch.acceptedAt) ? PAST_ITS_DATE : LIVE
}

/** Adds the type that a create asks for; true where the row hadn't got it. */
export function writeType(row: TokenRow, given: Given, card: CardFacts): boolean {
  const tokenType = addType(row.tokenType, typeOf(given))
  if (tokenType === row.tokenType) return false
  row.tokenType = tokenType
  if (isAnalytic(tokenType)) row.analyticsToken ??= analyticsTokenOf(card)
  return true
}

/** A new `token_expiry_date`, known to lie ahead, wakes a token that was suspended because the old one had passed. */
export function renew(row: TokenRow, given: Given): boolean {
  if (given.tokenExpiryDate === undefined) return false
  const next = follow(row, 'RENEW')
  return typeof next === 'object' && stand(row, next)
}

export function stand(row: TokenRow, { status, suspendedReason }: Standing): boolean {
  if (row.status === status && row.suspendedReason === suspendedReason) return false
  row.status = status
  row.suspendedReason = suspendedReason
  return true
}

export function analyticsTokenOf(card: CardFacts): string {
  assert(card.analyticsToken !== undefined, 'a token for analytics is decided with its analytics token at hand')
  return card.analyticsToken
}
