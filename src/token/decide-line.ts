// Decides one line of a batch for a card that already has a token, whoever made that token. The table in order.ts says
// which line counts. ../decide.ts decides lines that make a token.
import { refuse } from '../errors.ts'
import { type BatchLine, expiryRank, formerMark, linesOf, markOf, outcomeOf, rankOf } from './batch-order.ts'
import { addType, CARD_FIELD_NAMES, CARD_FIELDS, type Given, isReusable, writeFields } from './card-fields.ts'
import { decideNewest } from './decide-newest.ts'
import {
  type CardFacts,
  type CreateContext,
  initialStatus,
  newTokenRow,
  renew,
  setStatus,
  writeType,
} from './new-token.ts'
import { noteGiver } from './newest.ts'
import type { BatchMark, TokenRow } from './token.ts'
import { changed, giverOf, unchanged, type Verdict } from './verdict.ts'

interface Line {
  given: Given
  card: CardFacts
  context: CreateContext
  batch: BatchLine
  field: string
}

export function decideLine(row: TokenRow, line: Line): Verdict {
  const { onConflict } = line.batch
  if (onConflict === 'newest') return decideNewest(row, line)
  return onConflict === 'keep' || onConflict === 'reject' ? keepFirstLine(row, line) : keepHighestRank(row, line)
}

/** The policies `keep` and `reject`. */
function keepFirstLine(row: TokenRow, { given, card, context, batch, field }: Line): Verdict {
  const mark = markOf(row, batch)
  if (!mark?.created) {
    const first = mark ? mark.lines?.first : firstOfFile(row, batch)
    const isFirst = first === undefined || batch.line <= first
    if (batch.onConflict === 'reject' && isFirst && differs(row, given, card)) return refuse('conflict', field)
    const { batchNo, line } = batch
    const lines = first === undefined ? null : { first }
    return unchanged(
      row,
      outcomeOf(mark, batch, 'UNCHANGED'),
      context,
      mark ? undefined : { batchNo, created: false, line, lines },
    )
  }
  if (batch.line >= mark.line) return unchanged(row, outcomeOf(mark, batch, 'UNCHANGED'), context)
  // This line is earlier in the file than the mark's line. In file order the row would hold only this line's data. Only
  // this batch has written the row, so it keeps no givers.
  const fresh = newTokenRow(given, card, context)
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

/** The line by which an earlier batch of this file made the row: its other lines gave way to that one, and do so again. */
function firstOfFile(row: TokenRow, batch: BatchLine): number | undefined {
  const mark = formerMark(row, batch)
  return mark?.created ? mark.line : mark?.lines?.first
}

function differs(row: TokenRow, given: Given, card: CardFacts): boolean {
  if (given.tokenType !== undefined && addType(row.tokenType, given.tokenType) !== row.tokenType) return true
  return CARD_FIELD_NAMES.some(name => {
    const field = CARD_FIELDS[name]
    if (!field.given(given) || field.same(row, given)) return false
    // Another stated brand counts as a difference only if the effective brand differs, too.
    return name !== 'brand' || row.brand !== card.brand
  })
}

/** The policies `update` and `latest-expiry`. */
function keepHighestRank(row: TokenRow, { given, card, context, batch }: Line): Verdict {
  const mark = markOf(row, batch)
  const lines = linesOf(row, batch)
  const draft = { ...row }
  let isNew = false
  let isRanked = mark === undefined
  // latest-expiry: a line changes nothing unless its expiry is later than the card's expiry before the batch.
  if (lines.before === undefined || expiryRank(given) > lines.before) {
    const rank = rankOf(given, batch.line, batch.onConflict)
    isNew = writeFields(draft, given, card.brand, name => {
      if ((lines[name] ?? -1) >= rank) return false
      lines[name] = rank
      isRanked = true
      noteGiver(draft, [name], giverOf(context))
      return true
    })
    if (writeType(draft, given, card)) isNew = true
    if (renew(draft, given)) isNew = true
    // In file order the earliest line would have made the token and set its first status.
    if (lines.first !== undefined && batch.line < lines.first) {
      lines.first = batch.line
      isRanked = true
      if (setStatus(draft, initialStatus(given, batch))) isNew = true
    }
  }
  const outcome = outcomeOf(mark, batch, isNew ? 'UPDATED' : 'UNCHANGED')
  const { batchNo, line } = batch
  const next: BatchMark = { batchNo, created: mark?.created ?? false, line: Math.max(mark?.line ?? 0, line), lines }
  if (isNew) return changed(draft, context, next, outcome === 'DUPLICATE' ? 'DUPLICATE' : 'UPDATED')
  const told = outcome === 'DUPLICATE' ? 'DUPLICATE' : 'UNCHANGED'
  return unchanged(row, told, context, isRanked ? next : undefined, draft.givenAt)
}
