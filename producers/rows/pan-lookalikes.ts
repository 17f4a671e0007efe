// Rejects rows of a chunk if a text that will be in the results or the store looks like the card number of any row of
// that chunk. record.ts checks a text against the card of its own row; workers check cards that are encrypted.
import type { Reason } from '../../src/errors.ts'
import { digitsOf } from '../../src/token/pan.ts'
import { couldLookLikeCard, openPanLookalikes, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { holdsOwnNumber, isWholeNumber, type Row, rejectRow } from './record.ts'

/**
 * Returns the rows with such rows rejected. `stored`: references will be stored before a worker checks them, so all are
 * compared here. Otherwise references and texts about owners of sent rows are compared here only with cards that no worker
 * sees (those of rejected and skipped rows); the worker compares them with the other cards. A row that isn't rejected, and
 * whose number is given but isn't a card number, stays the same record, too; the results leave out its texts that could be a
 * card number.
 */
export function refusePanLookalikes(rows: Row[], { stored }: { stored: boolean }): Row[] {
  if (!rows.some(couldName)) return rows
  const all = likenessesOf(rows)
  const unseen = stored ? all : likenessesOf(rows.filter(row => !isSent(row)))
  const leakOf = (row: Row): Reason | undefined => {
    const { reference, echo = [], cardLike = [] } = row
    const judged = isSent(row) ? unseen : all
    if (reference !== undefined && judged.isIn(reference)) return 'reference_pan'
    if (cardLike.some(text => judged.isIn(text))) return 'reference_pan'
    return echo.some(value => all.isIn(value)) ? 'echo_pan' : undefined
  }
  return rows.map(row => {
    const reason = leakOf(row)
    if (reason === undefined) return withoutUnknownCard(row)
    if (row.skipped !== undefined) return { ...row, reference: undefined }
    const { line, number, fileLine, item, repairs, kept } = row
    const reference = reason === 'echo_pan' ? row.reference : undefined
    return { ...rejectRow(line, reason, reference, undefined, number), fileLine, item, repairs, kept }
  })
}

/** The row without texts that could be its card, if its number is none: columns may be shifted. */
function withoutUnknownCard(row: Row): Row {
  const { number, reference, echo } = row
  if (number === '' || isWholeNumber(number)) return row
  return {
    ...row,
    reference: couldLookLikeCard(reference) ? undefined : reference,
    echo: echo?.some(couldLookLikeCard) ? undefined : echo,
  }
}

export type CardDetector = (text: string, row: Row) => boolean

/**
 * Tells whether a text of a row shows a card: the row's own, or one that looks like any card of these rows. For a row
 * whose number is none, every text that could be a card number counts.
 */
export function cardDetector(rows: readonly Row[]): CardDetector {
  let all: PanLookalikes | undefined
  return (text, { number }) => {
    if (holdsOwnNumber(text, number)) return true
    if (!couldLookLikeCard(text)) return false
    if (!isWholeNumber(number)) return true
    all ??= likenessesOf(rows)
    return all.isIn(text)
  }
}

function couldName({ reference, echo = [], cardLike = [] }: Row): boolean {
  return cardLike.length > 0 || couldLookLikeCard(reference) || echo.some(couldLookLikeCard)
}

/** Whether the row is sent; a worker compares its reference with the cards of all sent rows. */
function isSent({ rejected, skipped }: Row): boolean {
  return rejected === undefined && skipped === undefined
}

function likenessesOf(rows: readonly Row[]): PanLookalikes {
  const cards = openPanLookalikes()
  for (const { number } of rows) if (number !== '') cards.add(digitsOf(number))
  return cards
}
