// Cuts ledger lines into chunks and makes the ask of one `transaction-batch` job of each. Nothing in a ledger line is
// secret, so there is no block: the lines travel in the signed envelope itself. The worker judges what a line may say.
import { assert, type Refusal } from '../src/errors.ts'
import type { Extent } from '../src/job/envelope/batch-extent.ts'
import { LEDGER_CHUNK, type TransactionLine } from '../src/job/transaction-batch.ts'
import { type Ask, check } from './ask.ts'

export interface LedgerChunk {
  /** From 0, in order. */
  number: number
  lines: readonly TransactionLine[]
}

export interface Cutter {
  /** Takes one line; returns the chunk that was complete before it. */
  put(line: TransactionLine): LedgerChunk | undefined
  end(): LedgerChunk | undefined
}

/** The same lines are always cut alike. */
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

/** At least what the line takes as JSON; a UTF-16 unit may be three bytes, or six where it is escaped. */
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
  /** What the whole batch is, where it is known beforehand. */
  extent?: Extent | undefined
}

/** The chunk as a job's request, under the jti that the worker asks for. */
export function transactionBatch(
  { batchId, extent }: LedgerPlan,
  { number, lines }: LedgerChunk,
): (Ask & { jti: string }) | Refusal {
  const ask = check('transaction-batch', {
    batch_id: batchId,
    chunk: number,
    ...(extent && { extent }),
    transactions: lines,
  })
  return 'refused' in ask ? ask : { ...ask, jti: `${batchId}-${number}` }
}
