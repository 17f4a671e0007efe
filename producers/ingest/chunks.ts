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

/** What a file comes to: all its rows, and the chunks and rows that are sent of them. */
export interface LedgerExtent {
  total: number
  chunks: number
  rows: number
}

/** Reads a file to its end, so that what is wrong with all of it is said before anything is sent. */
export async function measureRows(
  bytes: AsyncIterable<Buffer>,
  options: RowOptions,
  size: number,
): Promise<LedgerExtent> {
  const extent = { total: 0, chunks: 0, rows: 0 }
  for await (const { chunk, refused } of cutRows(readRows(bytes, options), size)) {
    const rows = chunk?.lines.length ?? 0
    extent.total += rows + refused.length
    extent.rows += rows
    if (chunk) extent.chunks += 1
  }
  return extent
}
