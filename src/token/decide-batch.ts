// One line of a batch over the row of a card that has a token already: made by this batch, by another, or by hand. The
// table in batch-order.ts says what stands. A line that makes a token isn't decided here.
import { refuse } from '../errors.ts'
import { type BatchLine, expiryRank, linesOf, markOf, rankOf } from './batch-order.ts'
import { addType, FACET_NAMES, FACETS, type Given, isReusable, writeFacets } from './card-fields.ts'
import { type CardFacts, type CreateContext, firstStanding, freshRow, renew, stand, writeType } from './new-token.ts'
import type { BatchMark, TokenRow } from './token.ts'
import { changed, unchanged, type Verdict } from './verdict.ts'

interface Line {
  given: Given
  card: CardFacts
  context: CreateContext
  batch: BatchLine
  field: string
}

export function foldLine(row: TokenRow, line: Line): Verdict {
  const { onConflict } = line.batch
  return onConflict === 'keep' || onConflict === 'reject' ? firstStands(row, line) : highestStands(row, line)
}

/** DUPLICATE where another line of this batch stands for the card already. */
function outcomeOf<Else>(mark: BatchMark | undefined, batch: BatchLine, otherwise: Else): 'DUPLICATE' | Else {
  return mark !== undefined && mark.line !== batch.line ? 'DUPLICATE' : otherwise
}

/** keep, reject */
function firstStands(row: TokenRow, { given, card, context, batch, field }: Line): Verdict {
  const mark = markOf(row, batch)
  if (!mark?.created) {
    if (batch.onConflict === 'reject' && differs(row, given, card)) return refuse('conflict', field)
    const { batchNo, line } = batch
    return unchanged(
      row,
      outcomeOf(mark, batch, 'UNCHANGED'),
      context,
      mark ? undefined : { batchNo, created: false, line, lines: null },
    )
  }
  if (batch.line >= mark.line) return unchanged(row, outcomeOf(mark, batch, 'UNCHANGED'), context)
  // Had this line come when its turn was, the row would hold its data alone.
  const fresh = freshRow(given, card, context)
  const draft: TokenRow = {
    ...row,
    ...fresh,
    tokenId: row.tokenId,
    createdAt: row.createdAt,
    version: row.version,
    thirdParty: row.thirdParty,
    sealed: isReusable(fresh.tokenType) ? row.sealed : null,
  }
  return changed(draft, context, fresh.mark, 'DUPLICATE')
}

function differs(row: TokenRow, given: Given, card: CardFacts): boolean {
  if (given.tokenType !== undefined && addType(row.tokenType, given.tokenType) !== row.tokenType) return true
  return FACET_NAMES.some(name => {
    const facet = FACETS[name]
    if (!facet.given(given) || facet.same(row, given)) return false
    // Stating the brand that was detected anyway says nothing new.
    return name !== 'brand' || row.brand !== card.brand
  })
}

/** update, latest-expiry */
function highestStands(row: TokenRow, { given, card, context, batch }: Line): Verdict {
  const mark = markOf(row, batch)
  const lines = linesOf(row, batch)
  const draft = { ...row }
  let isNew = false
  let isRanked = mark === undefined
  // latest-expiry: a card on file is left alone by all whose expiry isn't later than its own was.
  if (lines.before === undefined || expiryRank(given) > lines.before) {
    const rank = rankOf(given, batch.line, batch.onConflict)
    isNew = writeFacets(draft, given, card.brand, name => {
      if ((lines[name] ?? -1) >= rank) return false
      lines[name] = rank
      isRanked = true
      return true
    })
    if (writeType(draft, given, card)) isNew = true
    if (renew(draft, given)) isNew = true
    // The earliest line of the file is the one that makes the token, and says how it begins.
    if (lines.first !== undefined && batch.line < lines.first) {
      lines.first = batch.line
      isRanked = true
      if (stand(draft, firstStanding(given, batch))) isNew = true
    }
  }
  const outcome = outcomeOf(mark, batch, isNew ? 'UPDATED' : 'UNCHANGED')
  const { batchNo, line } = batch
  const next: BatchMark = { batchNo, created: mark?.created ?? false, line: Math.max(mark?.line ?? 0, line), lines }
  if (isNew) return changed(draft, context, next, outcome === 'DUPLICATE' ? 'DUPLICATE' : 'UPDATED')
  return unchanged(row, outcome === 'DUPLICATE' ? 'DUPLICATE' : 'UNCHANGED', context, isRanked ? next : undefined)
}
