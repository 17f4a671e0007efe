// Rejects rows with a text for the results or the store that looks like the card of any row of the chunk. record.ts
// checks a text against the card of its own row; workers check cards that are encrypted.
import type { Reason } from '../../src/errors.ts'
import { digitsOf } from '../../src/token/pan.ts'
import { couldLookLikeCard, openPanLookalikes, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { type Row, rejectRow } from './record.ts'

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
    return rejectRow(row.line, reason, reason === 'echo_pan' ? row.reference : undefined, undefined, row.number)
  })
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
