// What the rules have decided on one request about one token: the new row, and what the caller must do with it. The
// rules write into a copy of the stored row; the caller saves the copy and seals the PAN.
import type { Refusal } from '../errors.ts'
import { isReusable } from './card-fields.ts'
import { giverAt } from './newest.ts'
import type { BatchMark, Giver, TokenRow } from './token.ts'

export interface Decided {
  outcome: 'CREATED' | 'UPDATED' | 'UNCHANGED' | 'DUPLICATE'
  row: TokenRow
  /**
   * The token's data have changed, so the row must be saved. Its version is one above that of the stored row; of a new
   * row, 1.
   */
  changed: boolean
  /**
   * Only the batch mark, or who gave the data, has changed, so the row must be saved too. A saved mark tells later chunks
   * that this line has written the row; without it, an earlier line of another chunk would look like the batch's first
   * line for the row.
   */
  marked: boolean
  /** Only `lastReceipt` has changed. */
  touched: boolean
  /** The row must get the PAN, which isn't sealed yet. */
  needsSeal: boolean
}

export type Verdict = Decided | Refusal

export interface Moment {
  /** ms since the epoch. */
  now: number
  receiptId: string
  /** The giver of the data; for a single job, the time at which the job was sent. Default: the time `now`. */
  giver?: Giver
}

export function giverOf({ giver, now }: Moment): Giver {
  return giver ?? giverAt(now)
}

function needsSeal(row: TokenRow): boolean {
  return row.status !== 'DELETED' && isReusable(row.tokenType) && row.thirdParty === null && row.sealed === null
}

export function created(row: TokenRow): Decided {
  return { outcome: 'CREATED', row, changed: true, marked: false, touched: false, needsSeal: needsSeal(row) }
}

/** A verdict with changed data. `row`: a copy into which the caller has written the new data. */
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

/** The verdict on an interactive request that changes only the last receipt. */
export function touched(row: TokenRow, receiptId: string): Decided {
  const named = { ...row, lastReceipt: receiptId }
  return { outcome: 'UNCHANGED', row: named, changed: false, marked: false, touched: true, needsSeal: needsSeal(row) }
}

/**
 * The verdict on an interactive request that gives the data which the row has already. `row`: a copy that notes the
 * giver, with which a later batch compares its own.
 */
export function confirmed(row: TokenRow, { receiptId }: Moment): Decided {
  row.version += 1
  row.lastReceipt = receiptId
  row.mark = null
  return { outcome: 'UNCHANGED', row, changed: false, marked: true, touched: false, needsSeal: needsSeal(row) }
}

/**
 * The verdict on a batch record that changes nothing, or only the mark. If the mark changes, the receipt does too, so
 * that no earlier operation can be reversed.
 */
export function unchanged(
  row: TokenRow,
  outcome: 'UNCHANGED' | 'DUPLICATE',
  { receiptId }: Moment,
  mark?: BatchMark,
  givenAt = row.givenAt,
): Decided {
  const marked = mark !== undefined
  const kept = marked ? { ...row, version: row.version + 1, lastReceipt: receiptId, mark, givenAt } : row
  return { outcome, row: kept, changed: false, marked, touched: false, needsSeal: needsSeal(row) }
}
