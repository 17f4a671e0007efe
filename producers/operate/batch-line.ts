// The outcome of one record of a batch, found by its line or by its reference. Chunks lie in the order of the file, so
// a line is found by bisection; a reference is looked for in the outcomes of every chunk.
import { textOf } from '../../src/errors.ts'
import { unpack } from '../../src/job/chunk-outcomes.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import * as search from '../../src/store/job/receipt-search.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import * as shownTokens from '../../src/store/token/token-views.ts'
import { reuseTokenOf } from '../../src/token/token.ts'

/** One record of a chunk, and the receipt that decided it. */
export interface RecordFacts {
  batch: string
  chunk: number
  line: number
  reference?: string
  outcome: string
  reason?: string
  /** What the reason means. */
  text?: string
  field?: string
  token?: string
}

export type BatchName = Pick<Batch, 'batchNo' | 'batchId'>

export interface FoundRecord {
  facts: RecordFacts
  receipt: receipts.Receipt
}

/** How many chunks are read at a time in the search for a reference. */
const CHUNKS_MAX = 20

/** Finds the record at a line; undefined if no answered chunk has it. */
export async function findLine(db: Db, batch: BatchName, line: number): Promise<FoundRecord | undefined> {
  let low = 0
  let high = (await search.lastChunk(db, batch.batchNo)) ?? -1
  let found: search.ChunkOfLine | undefined
  while (low <= high) {
    const middle = (low + high) >> 1
    const at = await search.chunkFrom(db, batch.batchNo, middle)
    if (at && at.chunk <= high && at.firstLine <= line) {
      found = at
      low = at.chunk + 1
    } else high = middle - 1
  }
  const receipt = found && (await receipts.find(db, found.receiptId))
  return receipt && recordOf(db, batch, receipt, record => record.line === line)
}

/** Finds the record with a reference; undefined if no answered chunk has it. */
export async function findReference(db: Db, batch: BatchName, reference: string): Promise<FoundRecord | undefined> {
  for (const receiptId of await search.findChunksWith(db, batch.batchNo, reference, CHUNKS_MAX)) {
    const receipt = await receipts.find(db, receiptId)
    const found = receipt && (await recordOf(db, batch, receipt, record => record.reference === reference))
    if (found) return found
  }
  return undefined
}

async function recordOf(
  db: Db,
  batch: BatchName,
  receipt: receipts.Receipt,
  isWanted: (record: { line: number; reference: string | undefined }) => boolean,
): Promise<FoundRecord | undefined> {
  const record = receipt.outcomes === null ? undefined : unpack(receipt.outcomes).find(isWanted)
  if (!record) return undefined
  const { line, reference, outcome, reason, field, tokenId } = record
  const [token] = tokenId === undefined ? [] : await shownTokens.findByIds(db, [tokenId])
  const facts: RecordFacts = {
    batch: batch.batchId,
    chunk: receipt.chunk ?? 0,
    line,
    ...(reference === undefined ? {} : { reference }),
    outcome,
    ...(reason === undefined ? {} : { reason, text: textOf({ field: field ?? '', reason }) }),
    ...(field === undefined ? {} : { field }),
    ...(token ? { token: reuseTokenOf(token) } : {}),
  }
  return { facts, receipt }
}
