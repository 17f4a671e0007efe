// Cuts rows into chunks. The same rows and size always give the same chunks, so that a chunk's number means the same
// rows in every run.
import { type BlockForm, columnLines, rowUnits } from '../../src/job/record-columns.ts'
import { CHUNK } from '../../src/job/token-batch.ts'
import { jsonOf } from './column-record.ts'
import { refusePanLookalikes } from './pan-lookalikes.ts'
import type { Counted, Row } from './rows.ts'

export interface RowChunk {
  /** The chunk's place in the file, from 0. */
  position: number
  /** The chunk's number in its batch, from 0; undefined if all its rows are skipped: such a chunk isn't sent. */
  number: number | undefined
  /** All rows, also skipped ones. */
  rows: Row[]
  /** This is the last chunk of the file. If only skipped rows follow, no sent chunk is marked as the last. */
  isLast: boolean
}

/** The rows to be sent, in a form. */
export function chunkIn(
  form: BlockForm,
  { rows }: Pick<RowChunk, 'rows'>,
): { lines: string[]; form?: BlockForm; records?: number } {
  const sent = rows.filter(({ skipped }) => skipped === undefined)
  if (form === 'rows') return { lines: sent.map(jsonOf) }
  return { lines: columnLines(sent.map(({ columns, json }) => columns ?? json)), form, records: sent.length }
}

/** A chunk holds at most this many times `size` rows, counting skipped ones. */
const SKIPPED_TIMES_MAX = 50

/** The most bytes of records in a chunk: the block is their base64 with a header, and has a limit of its own. */
const BYTES_MAX = CHUNK.bytesMax - 65_536

/** Cuts rows into chunks. `stored`: references will be stored before a worker checks them. */
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

/** How many chunks and rows are sent. */
interface Extent {
  chunks: number
  rows: number
}

/**
 * The extent, if the numbers of rows are enough to know it: when no chunk can exceed its limits of bytes and of skipped
 * rows; else undefined.
 */
export function extentOf({ rows, skipped, recordBytesMax }: Counted, size: number): Extent | undefined {
  if (size * (recordBytesMax + 1) >= BYTES_MAX || size + skipped >= size * SKIPPED_TIMES_MAX) return undefined
  const sent = rows - skipped
  return { chunks: Math.ceil(sent / size), rows: sent }
}

/** Counts the chunks and the rows that will be sent, by reading all rows. */
export async function countChunks(parts: AsyncIterable<Row[]>, size: number): Promise<Extent> {
  const count = { chunks: 0, rows: 0 }
  for await (const { sent } of cut(parts, size)) {
    if (sent > 0) count.chunks += 1
    count.rows += sent
  }
  return count
}

interface Cut {
  rows: Row[]
  /** How many of the rows aren't skipped. */
  sent: number
  isLast: boolean
}

/** Cuts rows. `size`: the most rows to send in a chunk. Skipped rows go with the rows before them. */
async function* cut(parts: AsyncIterable<Row[]>, size: number): AsyncGenerator<Cut> {
  let rows: Row[] = []
  let sent = 0
  let bytes = 0
  for await (const part of parts) {
    for (const row of part) {
      // A UTF-16 unit is at most three bytes; bytes are counted exactly only if that could matter.
      const least = unitsOf(row) + 1
      const size_ = bytes + least * 3 > BYTES_MAX ? Buffer.byteLength(jsonOf(row)) + 1 : least
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

/** The length of the row's record as its line of JSON: rows are cut alike, in whatever form they are sent. */
function unitsOf({ json, columns }: Row): number {
  return columns ? rowUnits(columns) : json.length
}

export interface Begun {
  first: RowChunk | undefined
  /** All chunks, the first one included. */
  all: AsyncIterable<RowChunk>
}

/** Reads the first chunk, so that an error at the beginning of the input is thrown here. */
export async function begun(chunks: AsyncGenerator<RowChunk>): Promise<Begun> {
  const first = await chunks.next()
  async function* all() {
    if (first.done) return
    yield first.value
    yield* chunks
  }
  return { first: first.done ? undefined : first.value, all: all() }
}
