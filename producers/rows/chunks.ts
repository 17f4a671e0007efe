// Cuts rows into chunks, always alike for the same rows and size: the number of a chunk names the same rows in every
// run.
import { CHUNK } from '../../src/job/token-batch.ts'
import { refusePanLookalikes } from './pan-lookalikes.ts'
import type { Counted, Row } from './rows.ts'

export interface RowChunk {
  /** From 0, in order of the file. */
  position: number
  /** The chunk's number in its batch, from 0; undefined where all its rows are skipped, so that it isn't sent. */
  number: number | undefined
  /** Skipped ones included. */
  rows: Row[]
  /** No other follows. Where one of skipped rows alone follows, no chunk that is sent is the last. */
  isLast: boolean
}

/** So many times `size` rows, skipped ones included, make a chunk at most. */
const SKIPPED_TIMES_MAX = 50

/** A block is base64 of these bytes and a header, and has a bound of its own. */
const BYTES_MAX = CHUNK.bytesMax - 65_536

/** `stored`: the references are stored before a worker checks them. */
export async function* cutRows(
  parts: AsyncIterable<Row[]>,
  size: number,
  { stored = false }: { stored?: boolean } = {},
): AsyncGenerator<RowChunk> {
  let position = 0
  let number = 0
  for await (const { rows, sent, isLast } of cut(parts, size)) {
    const chunk = { position, number: sent > 0 ? number : undefined, isLast }
    yield { ...chunk, rows: refusePanLookalikes(rows, { stored }) }
    position += 1
    if (sent > 0) number += 1
  }
}

/** How many chunks those would be, where it follows from the number of rows: no chunk can be too long for its block. */
export function chunksOf({ rows, recordBytesMax }: Counted, size: number): number | undefined {
  return size * (recordBytesMax + 1) <= BYTES_MAX ? Math.ceil(rows / size) : undefined
}

/** How many chunks those would be, and how many rows they would send. */
export async function countChunks(
  parts: AsyncIterable<Row[]>,
  size: number,
): Promise<{ chunks: number; rows: number }> {
  const count = { chunks: 0, rows: 0 }
  for await (const { sent } of cut(parts, size)) {
    if (sent > 0) count.chunks += 1
    count.rows += sent
  }
  return count
}

interface Cut {
  rows: Row[]
  /** How many of them aren't skipped. */
  sent: number
  isLast: boolean
}

/** `size`: the most rows that are sent. Skipped ones stand with the rows before them. */
async function* cut(parts: AsyncIterable<Row[]>, size: number): AsyncGenerator<Cut> {
  let rows: Row[] = []
  let sent = 0
  let bytes = 0
  for await (const part of parts) {
    for (const row of part) {
      // A UTF-16 unit is at most three bytes; the exact count is taken only where it could matter.
      const least = row.json.length + 1
      const size_ = bytes + least * 3 > BYTES_MAX ? Buffer.byteLength(row.json) + 1 : least
      const isFull = (row.skipped === undefined && sent >= size) || rows.length >= size * SKIPPED_TIMES_MAX
      if (isFull || bytes + size_ > BYTES_MAX) {
        yield { rows, sent, isLast: false }
        rows = []
        sent = 0
        bytes = 0
      }
      rows.push(row)
      if (row.skipped !== undefined) continue
      sent += 1
      bytes += size_
    }
  }
  if (rows.length > 0) yield { rows, sent, isLast: true }
}

export interface Begun {
  first: RowChunk | undefined
  /** The first one included. */
  all: AsyncIterable<RowChunk>
}

/** Reads the first chunk: an error at the beginning of the input is thrown here. */
export async function begun(chunks: AsyncGenerator<RowChunk>): Promise<Begun> {
  const first = await chunks.next()
  async function* all() {
    if (first.done) return
    yield first.value
    yield* chunks
  }
  return { first: first.done ? undefined : first.value, all: all() }
}
