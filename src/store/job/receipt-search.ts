// Finds receipts of chunks by what a person on call knows of a record: a line of a batch's file, or its reference. It
// returns ids only; receipts.ts reads the receipts.
import type { Db } from '../pool.ts'

export interface ChunkOfLine {
  receiptId: string
  chunk: number
  /** The line of the chunk's first record. */
  firstLine: number
}

/** The highest chunk number of a batch that has a receipt; undefined if none has. */
export async function lastChunk(db: Db, batchNo: number): Promise<number | undefined> {
  const { rows } = await db.query<{ chunk: number }>({
    text: `select chunk
from tokenmill.receipt
where batch_no = $1
order by chunk desc
limit 1`,
    values: [batchNo],
  })
  return rows[0]?.chunk
}

/**
 * The first chunk with a receipt whose number is `chunk` or higher. The records of a chunk are in the order of their
 * lines.
 */
export async function chunkFrom(db: Db, batchNo: number, chunk: number): Promise<ChunkOfLine | undefined> {
  const { rows } = await db.query<ChunkOfLine>({
    text: `select receipt_id as "receiptId", chunk, coalesce(substring(outcomes from '^\\[\\[([0-9]+)')::int, 0) as "firstLine"
from tokenmill.receipt
where batch_no = $1 and chunk >= $2
order by chunk
limit 1`,
    values: [batchNo, chunk],
  })
  return rows[0]
}

/**
 * Ids of receipts of chunks with a record that has this reference. A chunk that holds the same text elsewhere may also
 * be listed.
 */
export async function findChunksWith(db: Db, batchNo: number, reference: string, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    text: `select receipt_id as id
from tokenmill.receipt
where batch_no = $1 and position($2 in outcomes) > 0
order by chunk
limit $3`,
    values: [batchNo, JSON.stringify(reference), limit],
  })
  return rows.map(({ id }) => id)
}

export interface ChunkOutcomes {
  receiptId: string
  chunk: number
  /** ms since the epoch. */
  completedAt: number
  /** Packed (chunk-outcomes.ts). */
  outcomes: string
}

/** The next `limit` chunks of a batch from `chunk` on that left a receipt with outcomes, in order. */
export async function chunksFrom(db: Db, batchNo: number, chunk: number, limit: number): Promise<ChunkOutcomes[]> {
  const { rows } = await db.query<ChunkOutcomes>({
    name: 'receipt-chunks-from',
    text: `select
  receipt_id as "receiptId",
  chunk,
  completed_at as "completedAt",
  outcomes
from tokenmill.receipt
where batch_no = $1 and chunk >= $2 and outcomes is not null
order by chunk
limit $3`,
    values: [batchNo, chunk, limit],
  })
  return rows
}
