// Cuts ledger lines into chunks and makes the ask of one `transaction-batch` job of each. Nothing in a ledger line is
// secret, so there is no block: the lines are in the signed envelope itself. The worker checks the content of lines.
import { assert, type Refusal } from '../src/errors.ts'
import type { BlockForm } from '../src/job/block/record-columns.ts'
import type { Extent } from '../src/job/envelope/batch-extent.ts'
import { inColumns, type TransactionLine } from '../src/job/ledger/columns.ts'
import { LEDGER_CHUNK } from '../src/job/transaction-batch.ts'
import { type Ask, check } from './ask.ts'

export interface LedgerChunk {
  /** The chunk's number, from 0. */
  number: number
  lines: readonly TransactionLine[]
}

export interface Cutter {
  /** Adds one line. Returns the chunk that was complete before it, if there is one. */
  put(line: TransactionLine): LedgerChunk | undefined
  end(): LedgerChunk | undefined
}

/** Cuts lines into chunks. The same lines and the same `size` give the same chunks. */
export function openCutter(size: number): Cutter {
  assert(size >= 1 && size <= LEDGER_CHUNK.recordsMax, 'a chunk holds 1 to 1,000 lines')
  let number = 0
  let lines: TransactionLine[] = []
  let bytes = 0
  const end = () => {
    const chunk = { number, lines }
    if (lines.length === 0) return undefined
    number += 1
    lines = []
    bytes = 0
    return chunk
  }
  return {
    put(line) {
      const least = bytesOf(line)
      const full = lines.length === size || bytes + least > LEDGER_CHUNK.bytesMax ? end() : undefined
      lines.push(line)
      bytes += least
      return full
    },
    end,
  }
}

/**
 * An upper bound of the line's bytes as JSON, if no member's name must be escaped: in a value a UTF-16 unit takes up to
 * three bytes, or six if it is escaped.
 */
function bytesOf({ transaction }: TransactionLine): number {
  let bytes = 40
  for (const key in transaction) {
    const value = transaction[key]
    bytes += key.length + 6
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
): (Ask & { jti: string }) | Refusal {
  const ask = check('transaction-batch', {
    batch_id: batchId,
    chunk: number,
    ...(extent && { extent }),
    ...(form === 'rows' ? { transactions: lines } : inColumns(lines)),
  })
  return 'refused' in ask ? ask : { ...ask, jti: `${batchId}-${number}` }
}
