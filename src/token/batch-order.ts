// Records of one card within one batch end as the batch's policy says, whatever the order in which their chunks commit.
// The row's batch mark therefore says which line of its last batch gave which field. Nothing here reads or writes a
// token's data.
//
//   policy of two lines that give a field, this one counts the row's mark
//   update the later line's a rank per field
//   latest-expiry the one with the later expiry, else the earlier a rank per field
//   keep, reject the earlier line's, the other one wholly absent the earliest line
//   newest the one with the later source time (newest.ts) its last line, for DUPLICATE only
//
// Each of these is a maximum, and a maximum doesn't depend on the order in which it is taken.
//
// If a file is migrated again, each row begins with what the earlier batch of that file has left in its mark (`former`): an
// earlier line of the file doesn't change what a later one gave, in the second run neither.
import { assert } from '../errors.ts'
import { CARD_FIELD_NAMES, CARD_FIELDS } from './card-fields.ts'
import type { BatchMark, LineOfField, TokenRow } from './token.ts'

export type OnConflict = 'update' | 'keep' | 'reject' | 'latest-expiry' | 'newest'
export type OnExpired = 'import' | 'suspend' | 'reject'

/** How a batch treats cards whose expiry date has passed. */
export interface ExpiryPolicy {
  onExpired: OnExpired
  /** The time by which "expired" and "past" are decided, whenever the chunk runs; ms since the epoch. */
  acceptedAt: number
}

/** The record that is being decided, as one line of its batch. */
export interface BatchLine extends ExpiryPolicy {
  batchNo: number
  /** 1 to 2^31 - 1. */
  line: number
  onConflict: OnConflict
  /** The numbers of other batches of the same file with the same policy. */
  former: ReadonlySet<number>
}

interface Expiry {
  expiryMonth?: number | null
  expiryYear?: number | null
}

const LINES = 2 ** 31

/** The rank of an expiry date. A card without one ranks below every other. */
export function expiryRank({ expiryMonth, expiryYear }: Expiry): number {
  return expiryYear ? expiryYear * 12 + (expiryMonth ?? 0) : 0
}

/**
 * The rank of a line; the higher rank counts. The number is exact: the rank of an expiry has 17 bits, a line number 31.
 */
export function rankOf(expiry: Expiry, line: number, onConflict: OnConflict): number {
  return onConflict === 'latest-expiry' ? expiryRank(expiry) * LINES + (LINES - 1 - line) : line
}

/** The row's mark if this batch has written the row before, else undefined. */
export function markOf(row: TokenRow, batch: BatchLine): BatchMark | undefined {
  return row.mark?.batchNo === batch.batchNo ? row.mark : undefined
}

/** The mark of another batch of the same file, if that batch was the last to write the row. */
export function formerMark({ mark }: TokenRow, { former }: BatchLine): BatchMark | undefined {
  return mark && former.has(mark.batchNo) ? mark : undefined
}

/** DUPLICATE if another line of this batch is in the row's mark, else `otherwise`. */
export function outcomeOf<Else>(mark: BatchMark | undefined, batch: BatchLine, otherwise: Else): 'DUPLICATE' | Else {
  return mark !== undefined && mark.line !== batch.line ? 'DUPLICATE' : otherwise
}

/** The mark of a row that a batch has just made: every field came from the same line. */
export function firstMark({ batchNo, line }: BatchLine): BatchMark {
  return { batchNo, created: true, line, lines: null }
}

/** A copy of the row's ranks by field, which the caller extends; only for policies that keep ranks. */
export function linesOf(row: TokenRow, batch: BatchLine): LineOfField {
  const mark = markOf(row, batch)
  if (mark?.lines) return { ...mark.lines }
  if (!mark) return batch.onConflict === 'latest-expiry' ? { before: expiryRank(row) } : formerLines(row, batch)
  assert(mark.created, 'a batch that only updates a row says which line gave which field')
  return { first: mark.line, ...firstLines(row, mark, batch) }
}

/** The ranks of a row that one line has made. */
function firstLines(row: TokenRow, { line }: BatchMark, { onConflict }: BatchLine): LineOfField {
  const lines: LineOfField = {}
  const rank = rankOf(row, line, onConflict)
  for (const name of CARD_FIELD_NAMES) if (CARD_FIELDS[name].held(row)) lines[name] = rank
  return lines
}

/**
 * `update`: the ranks that an earlier batch of this file has left. The line that gave a field gives it once more, because the
 * row may have been changed since; the lines before it don't.
 */
function formerLines(row: TokenRow, batch: BatchLine): LineOfField {
  const mark = formerMark(row, batch)
  if (!mark) return {}
  const ranks = mark.lines ?? firstLines(row, mark, batch)
  const lines: LineOfField = {}
  for (const name of CARD_FIELD_NAMES) {
    const rank = ranks[name]
    if (rank !== undefined) lines[name] = rank - 1
  }
  return lines
}
