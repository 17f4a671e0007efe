// The type of a batch's row: the layout that its first chunk set and all others must have, its progress, and the times
// that determine its state (batch-state.ts). Nothing is written here.

import type { RecordKind } from '../../job/catalogue.ts'
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import type { KnownExtent } from '../../job/envelope/batch-extent.ts'
import { type Counts, noCounts } from '../../job/outcome.ts'
import type { BatchLife } from './batch-state.ts'

export interface Batch extends BatchLife {
  batchNo: number
  clientId: string
  batchId: string
  /** Whose batch it is; null if its chunks are of several entities. */
  entityId: string | null
  /** The kind of records of a `token-batch`; `transaction` for a `transaction-batch`. */
  recordKind: RecordKind | 'transaction'
  tokenScope: string | null
  chunkRecords: number
  layout: Record<string, unknown>
  acceptedAt: number
  createdAt: number
  extent: KnownExtent | null
  /** 0 until the batch is finished. */
  revision: number
  rowsDone: number
  counts: Counts
  reasons: ReasonCounts
  /** When the progress was last summed, ms since the epoch. */
  summedAt: number
  /** `stalls`: how many times an event reported that the batch stalls; `stalledAt`: the last of these times. */
  stalls: number
  stalledAt: number | null
  /** When the last point of its chart was written (batch-samples.ts), ms since the epoch. */
  sampledAt: number | null
}

export const BATCH_COLUMNS = `
  batch_no as "batchNo",
  client_id as "clientId",
  batch_id as "batchId",
  entity_id as "entityId",
  record_kind as "recordKind",
  token_scope as "tokenScope",
  chunk_records as "chunkRecords",
  layout,
  accepted_at as "acceptedAt",
  created_at as "createdAt",
  extent_chunks as "extentChunks",
  extent_rows as "extentRows",
  source_name as "sourceName",
  source_sha256 as "sourceSha256",
  limit_chunks as "limitChunks",
  paused_at as "pausedAt",
  cancelled_at as "cancelledAt",
  finished_at as "finishedAt",
  revision,
  chunks_done as "chunksDone",
  rows_done as "rowsDone",
  counts,
  reasons,
  summed_at as "summedAt",
  active_at as "activeAt",
  stalls,
  stalled_at as "stalledAt",
  sampled_at as "sampledAt"`

export type BatchRow = Omit<Batch, 'extent' | 'counts'> & {
  extentRows: number | null
  sourceName: string | null
  sourceSha256: string | null
  counts: Partial<Counts>
}

export function batchOf({ extentRows: rows, sourceName: name, sourceSha256: sha256, ...row }: BatchRow): Batch {
  const { extentChunks: chunks } = row
  return {
    ...row,
    extent: chunks === null ? null : { chunks, rows, name, sha256 },
    counts: { ...noCounts(), ...row.counts },
  }
}

/**
 * What a statement selects of a batch `b`, and what code makes of it: commands show whole rows, and the console's login may
 * not read every column.
 */
export interface BatchShape<Row, Shown> {
  columns: string
  join: string
  of(row: Row): Shown
}

export const WHOLE_BATCH: BatchShape<BatchRow, Batch> = { columns: BATCH_COLUMNS, join: '', of: batchOf }
