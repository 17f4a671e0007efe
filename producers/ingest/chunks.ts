// Cuts the rows of a file into chunks of lines. Rows that the reader refused are reported in their place and never
// sent. The same file always gives the same chunks.
import type { TransactionLine } from '../../src/job/ledger/columns.ts'
import { type LedgerChunk, openCutter } from '../transaction-batch.ts'
import type { RefusedRow, Row } from './record.ts'
import { type RowOptions, readRows } from './rows.ts'

export interface RowChunk {
  /** Undefined if only refused rows follow the last chunk. */
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

/** How many rows a file has, and how many chunks and rows of it are sent. */
export interface LedgerExtent {
  total: number
  chunks: number
  rows: number
}

/** Reads a file to its end, so that errors of the whole file are reported before anything is sent. */
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
