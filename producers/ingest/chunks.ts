// Cuts the rows of a file into chunks of lines. Rows that the reader refused are reported in their place and never
// sent. The same file always gives the same chunks.
import { type Gathering, openGathering } from '../../src/job/ledger/gather.ts'
import { FileError } from '../rows/file-error.ts'
import { bytesOf, type LedgerChunk, openCutter } from '../transaction-batch.ts'
import type { RefusedRow, RowTaker } from './record.ts'
import { type RowOptions, readRows } from './rows.ts'

export interface RowChunk {
  /** Undefined if there are only refused rows. */
  chunk: LedgerChunk | undefined
  refused: readonly RefusedRow[]
}

export async function* cutRows(
  bytes: AsyncIterable<Buffer>,
  options: RowOptions,
  size: number,
): AsyncGenerator<RowChunk> {
  const cutter = openCutter(size)
  let ready: RowChunk[] = []
  let refused: RefusedRow[] = []
  let lines: Gathering | undefined
  let number = 0
  const chunkNow = () => lines && { number: number++, lines: lines.end() }
  const flush = (chunk: LedgerChunk | undefined) => {
    ready.push({ chunk, refused })
    refused = []
  }
  const room = (least: number): Gathering => {
    const isComplete = cutter.put(least)
    if (isComplete) flush(chunkNow())
    if (isComplete || !lines) lines = openGathering(size)
    return lines
  }
  const taker: RowTaker = {
    row(row) {
      if (!('reason' in row)) return room(bytesOf(row)).put(row)
      refused.push(row)
      if (refused.length === size) flush(undefined)
    },
    room,
  }
  for await (const _ of readRows(bytes, options, taker)) {
    yield* ready
    ready = []
  }
  yield* ready
  yield { chunk: chunkNow(), refused }
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
  const cutter = openCutter(size)
  const extent = { total: 0, chunks: 0, rows: 0 }
  const count = (least: number) => {
    extent.total += 1
    extent.rows += 1
    if (cutter.put(least)) extent.chunks += 1
    return undefined
  }
  const taker: RowTaker = {
    row(row) {
      if ('reason' in row) extent.total += 1
      else count(bytesOf(row))
    },
    room: count,
  }
  for await (const _ of readRows(bytes, options, taker));
  if (extent.total === 0) throw new FileError('input', 'The file holds no rows.', 'Check the export that made it.')
  if (extent.rows > 0) extent.chunks += 1
  return extent
}
