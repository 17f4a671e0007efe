// What undoing one operation makes of its token's row. It goes by the row alone: whether the operation named is the one
// that took effect is settled before.
import { tombstone } from './lifecycle.ts'
import type { TokenRow } from './token.ts'

export interface Undone {
  /** The outcome that the operation's receipt names. */
  outcome: string | null
  /** The operation's receipt. */
  receiptId: string
  /** The reversal's own. */
  reversalId: string
  /** ms since the epoch. */
  now: number
}

/**
 * The row to be written; undefined where nothing may be undone: somebody has built on the operation since, it deleted the
 * token (which is never undone), or it changed nothing. `before`: the row as it was, where the operation changed one.
 */
export function undo<Row extends TokenRow>(row: Row, before: Row | undefined, operation: Undone): Row | undefined {
  const { outcome, receiptId, reversalId, now } = operation
  if (row.lastReceipt !== receiptId || row.status === 'DELETED') return undefined
  const next = { version: row.version + 1, lastReceipt: reversalId }
  if (outcome === 'CREATED') return { ...tombstone(row), ...next, updatedAt: now }
  return before && { ...before, ...next }
}
