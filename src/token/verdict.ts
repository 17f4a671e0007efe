// What the rules say to one request about one token: the row as it is to be, and what the caller has to do about it.
// Rows are never changed in place; saving and sealing are the caller's.
import type { Refusal } from '../errors.ts'
import { isReusable } from './card-fields.ts'
import type { BatchMark, TokenRow } from './token.ts'

export interface Decided {
  outcome: 'CREATED' | 'UPDATED' | 'UNCHANGED' | 'DUPLICATE'
  row: TokenRow
  /** The token's data are others now: the row must be saved. Its version is one above the row that was handed in. */
  changed: boolean
  /**
   * Only the batch's mark is new. Saved, the row makes later chunks know that this line stands for it; not saved, an
   * earlier line of another chunk isn't told from the batch's first.
   */
  marked: boolean
  /** Nothing is new but that this receipt answered last. */
  touched: boolean
  /** The row keeps a PAN and hasn't got it sealed yet. */
  needsSeal: boolean
}

export type Verdict = Decided | Refusal

export interface Moment {
  /** ms since the epoch. */
  now: number
  receiptId: string
}

function needsSeal(row: TokenRow): boolean {
  return row.status !== 'DELETED' && isReusable(row.tokenType) && row.thirdParty === null && row.sealed === null
}

export function created(row: TokenRow): Decided {
  return { outcome: 'CREATED', row, changed: true, marked: false, touched: false, needsSeal: needsSeal(row) }
}

/** `row` is a copy that the caller has put the new data into. */
export function changed(
  row: TokenRow,
  { now, receiptId }: Moment,
  mark: BatchMark | null = null,
  outcome: 'UPDATED' | 'DUPLICATE' = 'UPDATED',
): Decided {
  row.version += 1
  row.updatedAt = now
  row.lastReceipt = receiptId
  row.mark = mark
  return { outcome, row, changed: true, marked: false, touched: false, needsSeal: needsSeal(row) }
}

/** Nothing new to an interactive request but its receipt. */
export function touched(row: TokenRow, receiptId: string): Decided {
  const named = { ...row, lastReceipt: receiptId }
  return { outcome: 'UNCHANGED', row: named, changed: false, marked: false, touched: true, needsSeal: needsSeal(row) }
}

/** Nothing new to a batch, or only the mark; with it goes the receipt: what was before can't be reversed any more. */
export function unchanged(
  row: TokenRow,
  outcome: 'UNCHANGED' | 'DUPLICATE',
  { receiptId }: Moment,
  mark?: BatchMark,
): Decided {
  const marked = mark !== undefined
  const kept = marked ? { ...row, version: row.version + 1, lastReceipt: receiptId, mark } : row
  return { outcome, row: kept, changed: false, marked, touched: false, needsSeal: needsSeal(row) }
}
