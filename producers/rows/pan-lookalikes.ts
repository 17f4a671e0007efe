// Rejects rows with a text for the results or the store that looks like the card of any row of the chunk. record.ts
// checks a text against the card of its own row; workers check cards that are encrypted.
import type { Reason } from '../../src/errors.ts'
import { digitsOf } from '../../src/token/pan.ts'
import { couldLookLikeCard, openPanLookalikes, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { holdsOwnNumber, type Row, rejectRow } from './record.ts'

/**
 * `stored`: references are stored before a worker checks them. Otherwise they are compared here only with cards that no
 * worker will see, those of refused rows. The worker compares them with the others, so that a chunk that an older release
 * sent stays the same chunk.
 */
export function refusePanLookalikes(rows: Row[], { stored }: { stored: boolean }): Row[] {
  if (!rows.some(({ reference, echo = [] }) => [reference, ...echo].some(couldLookLikeCard))) return rows
  const all = likenessesOf(rows)
  const unseen = stored ? all : likenessesOf(rows.filter(row => !isSent(row)))
  const leakOf = (row: Row): Reason | undefined => {
    const { reference, echo = [] } = row
    if (reference !== undefined && (isSent(row) ? unseen : all).isIn(reference)) return 'reference_pan'
    return echo.some(value => all.isIn(value)) ? 'echo_pan' : undefined
  }
  return rows.map(row => {
    const reason = leakOf(row)
    if (reason === undefined) return row
    if (row.skipped !== undefined) return { ...row, reference: undefined }
    const { line, number, fileLine, item, repairs, kept } = row
    const reference = reason === 'echo_pan' ? row.reference : undefined
    return { ...rejectRow(line, reason, reference, undefined, number), fileLine, item, repairs, kept }
  })
}

/**
 * Whether a text of a row shows a card: its own, or one that looks like any card of these rows. Of a row without a number
 * nobody knows the card.
 */
export function cardDetector(rows: readonly Row[]): (text: string, row: Row) => boolean {
  let all: PanLookalikes | undefined
  return (text, { number }) => {
    if (holdsOwnNumber(text, number)) return true
    if (!couldLookLikeCard(text)) return false
    all ??= likenessesOf(rows)
    return number === '' || all.isIn(text)
  }
}

/** A worker compares its reference with the cards that are sent beside it. */
function isSent({ rejected, skipped }: Row): boolean {
  return rejected === undefined && skipped === undefined
}

function likenessesOf(rows: readonly Row[]): PanLookalikes {
  const cards = openPanLookalikes()
  for (const { number } of rows) if (number !== '') cards.add(digitsOf(number))
  return cards
}
