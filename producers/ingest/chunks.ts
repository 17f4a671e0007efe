// Cuts the rows of a file into chunks of lines. Rows that the reader refused are reported in their place and never
// sent. The same file is always cut alike.
import type { TransactionLine } from '../../src/job/transaction-batch.ts'
import { type LedgerChunk, openCutter } from '../transaction-batch.ts'
import type { RefusedRow, Row } from './record.ts'
import { type RowOptions, readRows } from './rows.ts'

export interface RowChunk {
  /** Absent where only refused rows follow the last chunk. */
  chunk: LedgerChunk | undefined
  refused: readonly RefusedRow[]
}

export async function* cutRows(parts: AsyncIterable<Row[]>, size: number): AsyncGenerator<RowChunk> {
  const cutter = openCutter(size)
  let refused: RefusedRow[] = []
  for await (const part of parts) {
    for (const row of part) {
      if ('reason' in row) {
        refused.push(row)
        continue
      }
      const chunk = cutter.put(row satisfies TransactionLine)
      if (chunk === undefined && refused.length < size) continue
      yield { chunk, refused }
      refused = []
    }
  }
  yield { chunk: cutter.end(), refused }
}

const LF = 10

/**
 * Reads the beginning of a file, so that an error of the whole file is reported at once, and counts its lines: an
 * estimate of its rows.
 */
export async function validateRows(bytes: AsyncIterable<Buffer>, options: RowOptions): Promise<number> {
  let lines = 0
  const counted = async function* () {
    for await (const piece of bytes) {
      for (let at = piece.indexOf(LF); at >= 0; at = piece.indexOf(LF, at + 1)) lines += 1
      yield piece
    }
  }
  const pieces = counted()
  // Without `return`: the reader stops after its first rows, and the counting goes on.
  const rows = readRows({ [Symbol.asyncIterator]: () => ({ next: () => pieces.next() }) }, options)
  await rows.next()
  for await (const _ of pieces);
  return Math.max(1, lines - (options.format === 'csv' ? 1 : 0))
}
