// Decides one line of a batch with `newest` for a card that already has a token. newest.ts says which of two givers counts.

import { type BatchLine, type ExpiryPolicy, markOf, outcomeOf } from './batch-order.ts'
import { type Given, writeFields } from './card-fields.ts'
import { type CardFacts, type CreateContext, initialStatus, renew, setStatus, writeType } from './new-token.ts'
import { giversOf, isLater } from './newest.ts'
import type { CardFieldName, GivenAt, Giver, TokenRow } from './token.ts'
import { changed, giverOf, unchanged, type Verdict } from './verdict.ts'

interface Line {
  given: Given
  card: CardFacts
  context: CreateContext
  batch: BatchLine
}

/**
 * The batch's first line for a row is noted even if it changes nothing: it has been compared with the row, so no
 * reversal may take back what it was compared with.
 */
export function decideNewest(row: TokenRow, { given, card, context, batch }: Line): Verdict {
  const { batchNo, line } = batch
  const mark = markOf(row, batch)
  const giver = giverOf(context)
  const givers = giversOf(row)
  const draft = { ...row, givenAt: givers }
  const won = new Set<CardFieldName>()
  const wrote = writeFields(draft, given, card.brand, name => {
    if (!isLater(giver, givers[name])) return false
    givers[name] = giver
    won.add(name)
    return true
  })
  const typed = writeType(draft, given, card)
  const { isDecisive, isChanged } = followDates(draft, givers, { given, won, giver, batch })
  if (isDecisive) givers.status = giver
  const lastLine = Math.max(mark?.line ?? 0, line)
  const next = { batchNo, created: mark?.created ?? false, line: lastLine, lines: null }
  if (wrote || typed || isChanged) return changed(draft, context, next, outcomeOf(mark, batch, 'UPDATED'))
  const isNoted = won.size > 0 || mark === undefined
  const givenAt = won.size > 0 ? givers : row.givenAt
  return unchanged(row, outcomeOf(mark, batch, 'UNCHANGED'), context, isNoted ? next : undefined, givenAt)
}

interface WonDates {
  given: Given
  /** The fields of which the giver is the latest. */
  won: ReadonlySet<CardFieldName>
  giver: Giver
  batch: ExpiryPolicy
}

/**
 * Writes the status that follows from the dates that count. The line whose expiry date stands decides whether the token
 * is suspended as `CARD_EXPIRED` (`isDecisive`).
 */
export function followDates(
  row: TokenRow,
  givers: GivenAt,
  { given, won, giver, batch }: WonDates,
): { isDecisive: boolean; isChanged: boolean } {
  const renewed = won.has('tokenExpiry') && renew(row, given)
  const isDecisive = won.has('expiry') && isLater(giver, givers.status)
  const isFollowed = isDecisive || (renewed && !(givers.status && isLater(givers.status, givers.expiry)))
  const followed = isFollowed && followExpiry(row, batch)
  return { isDecisive, isChanged: renewed || followed }
}

/** Suspends the token as `CARD_EXPIRED`, or lifts that. Any other suspension stays. */
function followExpiry(row: TokenRow, batch: ExpiryPolicy): boolean {
  const isOpen = row.status === 'ACTIVE' || row.suspendedReason === 'CARD_EXPIRED'
  const { expiryMonth, expiryYear } = row
  const expiry = expiryMonth === null || expiryYear === null ? {} : { expiryMonth, expiryYear }
  return isOpen && setStatus(row, initialStatus(expiry, batch))
}
