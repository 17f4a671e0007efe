// The rules of tokens: they decide from a row and a request what happens to the token. Single jobs and the records of a
// chunk use the same functions. Nothing is looked up, saved or encrypted here.
import { dateOf } from '../clock.ts'
import { assert, type Refusal, refuse } from '../errors.ts'
import type { ExpiryPolicy } from './batch-order.ts'
import { isExpired } from './card.ts'
import { CARD_FIELDS, type Given, isAnalytic, writeFields } from './card-fields.ts'
import { decideLine } from './decide-line.ts'
import { followDates } from './decide-newest.ts'
import { follow, type LifecycleEvent, tombstone } from './lifecycle.ts'
import {
  analyticsTokenOf,
  type CardFacts,
  type CreateContext,
  newTokenRow,
  renew,
  setStatus,
  writeType,
} from './new-token.ts'
import { giversOf, isLater, namesGiven, noteGiver } from './newest.ts'
import { holdsPanLookalike } from './pan.ts'
import { type CardFieldName, type DatedName, isSameCard, type TokenRow } from './token.ts'
import { changed, confirmed, created, giverOf, type Moment, touched, type Verdict } from './verdict.ts'

export type { Given } from './card-fields.ts'
export type { CardFacts, CreateContext } from './new-token.ts'
export type { Decided, Verdict } from './verdict.ts'

/**
 * Decides a PUT, or a `token-create` record of a batch. `row`: the live token of this card in its scope. A refusal
 * because of the card names `context.field`, any other the wrong field.
 */
export function create(row: TokenRow | undefined, given: Given, card: CardFacts, context: CreateContext): Verdict {
  const { batch, now, field = 'body.encrypted_card' } = context
  const past = pastRefusal(given, batch?.acceptedAt ?? now)
  if (past) return past
  if (batch?.onExpired === 'reject' && isExpired(given, batch.acceptedAt)) return refuse('card_expired', field)
  if (row === undefined) return created(newTokenRow(given, card, context))
  assert(row.status !== 'DELETED', 'a deleted token stands for no card')
  if (batch) return decideLine(row, { given, card, context, batch, field })
  const draft = { ...row }
  const wrote = writeFields(draft, given, card.brand)
  const typed = writeType(draft, given, card)
  const renewed = renew(draft, given)
  return concluded(row, draft, { isChanged: wrote || typed || renewed, names: namesGiven(given) }, context)
}

/** `names`: what the request says, whether or not the row says so already. */
function concluded(
  row: TokenRow,
  draft: TokenRow,
  { isChanged, names }: { isChanged: boolean; names: readonly DatedName[] },
  context: Moment,
): Verdict {
  const isDated = noteGiver(draft, names, giverOf(context))
  if (isChanged) return changed(draft, context)
  return isDated ? confirmed(draft, context) : touched(row, context.receiptId)
}

/**
 * Decides a PATCH. `given`: the fields of the card, overridden by the fields beside the card; `card`: set if a PAN was
 * given. The caller has checked that no other live token has that PAN. `newest`: only those fields count that nobody gave
 * later, and the status follows the expiry date.
 */
export function update(
  row: TokenRow,
  { card, ...given }: Given & { card?: CardFacts },
  context: Moment & { field?: string; newest?: ExpiryPolicy | undefined },
): Verdict {
  if (row.status === 'DELETED') return refuse('token_not_found', 'body.id')
  // Only the third party knows the card of its token, so the card can't be changed here.
  if (card && row.thirdParty) return refuse('third_party_card', context.field ?? 'body.encrypted_card')
  const wrong = pastRefusal(given, context.now) ?? namedRefusal(given, row) ?? (card && namedRefusal(given, card))
  if (wrong) return wrong
  const { newest } = context
  const giver = giverOf(context)
  const draft = { ...row, givenAt: newest ? giversOf(row) : row.givenAt }
  const linked = card !== undefined && link(draft, card)
  const halved = linked ? halfDateRefusal(given) : undefined
  if (halved) return halved
  const cleared = linked ? clearFormer(draft, given, name => !newest || isLater(giver, draft.givenAt?.[name])) : []
  const counts = new Set(namesGiven(given).filter(name => !newest || isLater(giver, draft.givenAt?.[name])))
  const wrote = writeFields(draft, given, card?.brand ?? given.cardBrand ?? row.brand, name => counts.has(name))
  const followed = newest
    ? followDates(draft, draft.givenAt ?? {}, { given, won: counts, giver, batch: newest })
    : asRenewed(renew(draft, given))
  const names: DatedName[] = [
    ...counts,
    ...cleared,
    ...(card ? ['number' as const] : []),
    ...(followed.isDecisive ? ['status' as const] : []),
  ]
  return concluded(row, draft, { isChanged: wrote || linked || followed.isChanged, names }, context)
}

/** Without `newest`, the request whose new date reactivates the token is the giver of its status. */
function asRenewed(renewed: boolean) {
  return { isDecisive: renewed, isChanged: renewed }
}

/**
 * Links the token to another card; false if it is the same card. The stored `card_brand` was the old card's, so it is
 * removed.
 */
function link(row: TokenRow, card: CardFacts): boolean {
  if (isSameCard(row.cards, card.fingerprints.known)) return false
  row.cards = card.fingerprints.kept
  row.link = card.fingerprints
  row.bin = card.bin
  row.lastFour = card.lastFour
  row.brand = card.brand
  row.cardBrand = null
  row.binRange = card.binRange
  row.analyticsToken = isAnalytic(row.tokenType) ? analyticsTokenOf(card) : null
  row.sealed = null
  // A later batch must know that the token's number was changed, so the row keeps its givers from now on.
  const { brand: _, ...givers } = giversOf(row)
  row.givenAt = givers
  return true
}

/** What stands on a card beside its number and name: it is never the former card's. */
const OF_ONE_CARD = ['expiry', 'sequence', 'start'] as const

/**
 * Clears what the former card had and the request doesn't give for the new one: a guess would be declined later. Returns
 * the names of the fields, whose giver is the request.
 */
function clearFormer(
  row: TokenRow,
  given: Given,
  wins: (name: CardFieldName) => boolean,
): (typeof OF_ONE_CARD)[number][] {
  const cleared = OF_ONE_CARD.filter(name => !CARD_FIELDS[name].given(given) && wins(name))
  if (cleared.includes('expiry')) {
    row.expiryMonth = null
    row.expiryYear = null
  }
  if (cleared.includes('sequence')) row.cardSequence = null
  if (cleared.includes('start')) {
    row.startMonth = null
    row.startYear = null
  }
  return cleared
}

/** The refusal of a new card with half of its expiry date: the other half would be the former card's. */
function halfDateRefusal({ expiryMonth, expiryYear }: Given): Refusal | undefined {
  if ((expiryMonth === undefined) === (expiryYear === undefined)) return undefined
  return refuse('field_required', expiryMonth === undefined ? 'body.expiry_month' : 'body.expiry_year')
}

/** Decides suspend, activate and delete, and the scheduler's EXPIRE. A 404 names `field`: `params.id` or `body.id`. */
export function lifecycle(row: TokenRow, event: LifecycleEvent, context: Moment, field: string): Verdict {
  const next = follow(row, event)
  if (next === 'gone') return refuse('token_not_found', field)
  // The token's expiry date may have been changed after the scheduler read it: then EXPIRE only writes the last
  // receipt.
  if (event === 'EXPIRE' && (next === 'stays' || !hasPassed(row.tokenExpiryDate, context.now))) {
    return touched(row, context.receiptId)
  }
  if (next !== 'stays' && next.status === 'DELETED') return changed(tombstone(row), context)
  const draft = { ...row }
  const isChanged = next !== 'stays' && setStatus(draft, next)
  return concluded(row, draft, { isChanged, names: ['status'] }, context)
}

/**
 * The refusal of a name or e-mail address that holds a number with the first and last digits of the token's card: both
 * are stored in clear.
 */
function namedRefusal(given: Given, { bin, lastFour }: Pick<TokenRow, 'bin' | 'lastFour'>): Refusal | undefined {
  if (bin === null || lastFour === null) return undefined
  const holds = (text: string | null = null) => text !== null && holdsPanLookalike(text, { bin, lastFour })
  if (holds(given.cardHolderName)) return refuse('field_value', 'body.card_holder_name')
  return holds(given.cardHolderEmail) ? refuse('field_value', 'body.card_holder_email') : undefined
}

function pastRefusal(given: Given, at: number): Refusal | undefined {
  return hasPassed(given.tokenExpiryDate ?? null, at) ? refuse('expiry_past', 'body.token_expiry_date') : undefined
}

// A date has passed when its day is over in UTC.
function hasPassed(date: string | null, at: number): boolean {
  return date !== null && date < dateOf(at)
}
