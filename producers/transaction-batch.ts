// Cuts ledger lines into chunks and makes the ask of one `transaction-batch` job of each. Nothing in a ledger line is
// secret, so there is no block: the lines are in the signed envelope itself. The worker checks the content of lines.
import { assert, type Refusal } from '../src/errors.ts'
import type { Extent } from '../src/job/envelope/batch-extent.ts'
import type { TransactionLine } from '../src/job/ledger/columns.ts'
import type { Gathered } from '../src/job/ledger/gather.ts'
import type { BlockForm } from '../src/job/record-columns.ts'
import { LEDGER_CHUNK, TransactionBatch } from '../src/job/transaction-batch.ts'
import { type Ask, check } from './ask.ts'

export interface LedgerChunk {
  /** The chunk's number, from 0. */
  number: number
  lines: Gathered
}

export interface Cutter {
  /** Counts one line of so many bytes. Whether the chunk was complete before it, so that the line begins the next. */
  put(bytes: number): boolean
}

/** Tells where to cut lines into chunks. The same lines and the same `size` give the same chunks. */
export function openCutter(size: number): Cutter {
  assert(size >= 1 && size <= LEDGER_CHUNK.recordsMax, 'a chunk holds 1 to 1,000 lines')
  let lines = 0
  let bytes = 0
  return {
    put(least) {
      const isComplete = lines > 0 && (lines === size || bytes + least > LEDGER_CHUNK.bytesMax)
      lines = isComplete ? 1 : lines + 1
      bytes = isComplete ? least : bytes + least
      return isComplete
    },
  }
}

/** Of a line as JSON: what stands beside its members, and in each member beside its name and its value. */
export const BYTES = { line: 40, member: 6 } as const

/**
 * An upper bound of the line's bytes as JSON, if no member's name must be escaped: in a value a UTF-16 unit takes up to
 * three bytes, or six if it is escaped.
 */
export function bytesOf({ transaction }: TransactionLine): number {
  let bytes: number = BYTES.line
  for (const key in transaction) {
    const value = transaction[key]
    bytes += key.length + BYTES.member
    if (typeof value === 'string') bytes += PLAIN.test(value) ? value.length : value.length * 6
    else bytes += JSON.stringify(value)?.length ?? 4
  }
  return bytes
}
const PLAIN = /^[ !#-[\]-~]*$/

export interface LedgerPlan {
  batchId: string
  /** The extent of the whole batch, if it is known beforehand. */
  extent?: Extent | undefined
}

/** The ask of a chunk in a form, with the jti that the worker requires. */
export function transactionBatch(
  { batchId, extent }: LedgerPlan,
  { number, lines }: LedgerChunk,
  form: BlockForm = 'rows',
): (Ask<'transaction-batch'> & { jti: string }) | Refusal {
  const ask = check('transaction-batch', TransactionBatch, {
    batch_id: batchId,
    chunk: number,
    ...(extent && { extent }),
    ...(form === 'rows' ? lines.rows() : lines.columns()),
  })
  return 'refused' in ask ? ask : { ...ask, jti: `${batchId}-${number}` }
}
