// Computes the row of a token after one operation on it is reversed. Nothing is looked up here: the caller has checked
// that the named operation is the one that took effect.
import { tombstone } from './lifecycle.ts'
import type { TokenRow } from './token.ts'

interface Undone {
  /** The outcome in the operation's receipt. */
  outcome: string | null
  /** The operation's receipt. */
  receiptId: string
  /** The reversal's receipt. */
  reversalId: string
  /** ms since the epoch. */
  now: number
  /** Whether the token has an owner, after the operation's references were taken back. */
  isOwned: boolean
}

/**
 * The row to write; undefined if nothing may be reversed, because another operation has followed, the operation deleted
 * the token (which is never reversed), it made a token that somebody owns, or it changed nothing. `before`: the row before the operation, if the operation
 * changed one.
 */
export function undo<Row extends TokenRow>(row: Row, before: Row | undefined, operation: Undone): Row | undefined {
  const { outcome, receiptId, reversalId, now, isOwned } = operation
  if (row.lastReceipt !== receiptId || row.status === 'DELETED') return undefined
  const next = { version: row.version + 1, lastReceipt: reversalId }
  if (outcome === 'CREATED') return isOwned ? undefined : { ...tombstone(row), ...next, updatedAt: now }
  return before && { ...before, ...next }
}
