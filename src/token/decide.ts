// The rules of tokens: a row and a request become a verdict. The same functions serve one job over HTTP and
// the records of a chunk, folded in line order. They look nothing up, and neither save nor seal.
import { dateOf } from '../clock.ts'
import { assert, type Refusal, refuse } from '../errors.ts'
import { isExpired } from './card.ts'
import { type Given, isAnalytic, writeFacets } from './card-fields.ts'
import { foldLine } from './decide-batch.ts'
import { follow, type LifecycleEvent, tombstone } from './lifecycle.ts'
import { analyticsTokenOf, type CardFacts, type CreateContext, freshRow, renew, stand, writeType } from './new-token.ts'
import { holdsLike } from './pan.ts'
import type { TokenRow } from './token.ts'
import { changed, created, type Moment, touched, type Verdict } from './verdict.ts'

export type { Given } from './card-fields.ts'
export type { CardFacts, CreateContext } from './new-token.ts'
export type { Decided, Verdict } from './verdict.ts'

/**
 * PUT, and the `token-create` records of a batch. `row` is the live token of this card in its scope. Refusals name
 * `context.field` where the card is at fault, else the field.
 */
export function create(row: TokenRow | undefined, given: Given, card: CardFacts, context: CreateContext): Verdict {
  const { batch, now, field = 'body.encrypted_card' } = context
  const past = pastRefusal(given, batch?.acceptedAt ?? now)
  if (past) return past
  if (batch?.onExpired === 'reject' && isExpired(given, batch.acceptedAt)) return refuse('card_expired', field)
  if (row === undefined) return created(freshRow(given, card, context))
  assert(row.status !== 'DELETED', 'a deleted token stands for no card')
  if (batch) return foldLine(row, { given, card, context, batch, field })
  const draft = { ...row }
  const wrote = writeFacets(draft, given, card.brand)
  const typed = writeType(draft, given, card)
  return renew(draft, given) || typed || wrote ? changed(draft, context) : touched(row, context.receiptId)
}

/**
 * PATCH. `given` is the fields inside the card overridden by those beside it; `card` is there where a PAN was given,
 * and whether another live token has that PAN was asked before.
 */
export function update(
  row: TokenRow,
  { card, ...given }: Given & { card?: CardFacts },
  context: Moment & { field?: string },
): Verdict {
  if (row.status === 'DELETED') return refuse('token_not_found', 'body.id')
  // Whose card it is only the third party knows.
  if (card && row.thirdParty) return refuse('third_party_card', context.field ?? 'body.encrypted_card')
  const wrong = pastRefusal(given, context.now) ?? namedRefusal(given, row) ?? (card && namedRefusal(given, card))
  if (wrong) return wrong
  const draft = { ...row }
  const linked = card !== undefined && link(draft, card)
  const wrote = writeFacets(draft, given, card?.brand ?? given.cardBrand ?? row.brand)
  return renew(draft, given) || linked || wrote ? changed(draft, context) : touched(row, context.receiptId)
}

/** Makes the token stand for another card; false where it is the same one. A stored `card_brand` was the old card's. */
function link(row: TokenRow, card: CardFacts): boolean {
  if (row.fingerprint?.equals(card.fingerprint)) return false
  row.fingerprint = card.fingerprint
  row.bin = card.bin
  row.lastFour = card.lastFour
  row.brand = card.brand
  row.cardBrand = null
  row.binRange = card.binRange
  row.analyticsToken = isAnalytic(row.tokenType) ? analyticsTokenOf(card) : null
  row.sealed = null
  return true
}

/** Suspend, activate, delete; and the scheduler's EXPIRE. `field` is what a 404 names: `params.id` or `body.id`. */
export function lifecycle(row: TokenRow, event: LifecycleEvent, context: Moment, field: string): Verdict {
  const next = follow(row, event)
  if (next === 'gone') return refuse('token_not_found', field)
  // The date may have been put off since the scheduler looked.
  if (next === 'stays' || (event === 'EXPIRE' && !hasPassed(row.tokenExpiryDate, context.now))) {
    return touched(row, context.receiptId)
  }
  if (next.status === 'DELETED') return changed(tombstone(row), context)
  const draft = { ...row }
  stand(draft, next)
  return changed(draft, context)
}

/** Name and address lie in clear: neither may hold the number of the card they stand beside. */
function namedRefusal(given: Given, { bin, lastFour }: Pick<TokenRow, 'bin' | 'lastFour'>): Refusal | undefined {
  if (bin === null || lastFour === null) return undefined
  const holds = (text: string | undefined) => text !== undefined && holdsLike(text, { bin, lastFour })
  if (holds(given.cardHolderName)) return refuse('field_value', 'body.card_holder_name')
  return holds(given.cardHolderEmail) ? refuse('field_value', 'body.card_holder_email') : undefined
}

function pastRefusal(given: Given, at: number): Refusal | undefined {
  return hasPassed(given.tokenExpiryDate ?? null, at) ? refuse('expiry_past', 'body.token_expiry_date') : undefined
}

// A date lasts to its end, in UTC.
function hasPassed(date: string | null, at: number): boolean {
  return date !== null && date < dateOf(at)
}
