// Cuts rows into chunks, always alike for the same rows and size: the number of a chunk names the same rows in every
// run.
import { CHUNK } from '../../src/job/token-batch.ts'
import { refusePanLookalikes } from './pan-lookalikes.ts'
import type { Counted, Row } from './rows.ts'

export interface RowChunk {
  /** From 0, in order. */
  number: number
  rows: Row[]
  /** No other follows. */
  isLast: boolean
}

/** A block is base64 of these bytes and a header, and has a bound of its own. */
const BYTES_MAX = CHUNK.bytesMax - 65_536

/** `stored`: the references are stored before a worker checks them. */
export async function* cutRows(
  parts: AsyncIterable<Row[]>,
  size: number,
  { stored = false }: { stored?: boolean } = {},
): AsyncGenerator<RowChunk> {
  let number = 0
  for await (const { rows, isLast } of cut(parts, size)) {
    yield { number, rows: refusePanLookalikes(rows, { stored }), isLast }
    number += 1
  }
}

/** How many chunks those would be, where it follows from the number of rows: no chunk can be too long for its block. */
export function chunksOf({ rows, recordBytesMax }: Counted, size: number): number | undefined {
  return size * (recordBytesMax + 1) <= BYTES_MAX ? Math.ceil(rows / size) : undefined
}

/** How many chunks those would be. */
export async function countChunks(parts: AsyncIterable<Row[]>, size: number): Promise<number> {
  let chunks = 0
  for await (const _ of cut(parts, size)) chunks += 1
  return chunks
}

async function* cut(parts: AsyncIterable<Row[]>, size: number): AsyncGenerator<{ rows: Row[]; isLast: boolean }> {
  let rows: Row[] = []
  let bytes = 0
  for await (const part of parts) {
    for (const row of part) {
      // A UTF-16 unit is at most three bytes; the exact count is taken only where it could matter.
      const least = row.json.length + 1
      const size_ = bytes + least * 3 > BYTES_MAX ? Buffer.byteLength(row.json) + 1 : least
      if (rows.length === size || bytes + size_ > BYTES_MAX) {
        yield { rows, isLast: false }
        rows = []
        bytes = 0
      }
      rows.push(row)
      bytes += size_
    }
  }
  if (rows.length > 0) yield { rows, isLast: true }
}

/** Reads the first chunk and returns all chunks: an error at the beginning of the input is thrown here. */
export async function begun(chunks: AsyncGenerator<RowChunk>): Promise<AsyncIterable<RowChunk>> {
  const first = await chunks.next()
  async function* all() {
    if (first.done) return
    yield first.value
    yield* chunks
  }
  return all()
}
