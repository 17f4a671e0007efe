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

export interface BatchRow {
  batch_no: number
  client_id: string
  batch_id: string
  entity_id: string | null
  record_kind: Batch['recordKind']
  token_scope: string | null
  chunk_records: number
  layout: Record<string, unknown>
  accepted_at: number
  created_at: number
  extent_chunks: number | null
  extent_rows: number | null
  source_name: string | null
  source_sha256: string | null
  limit_chunks: number | null
  paused_at: number | null
  cancelled_at: number | null
  finished_at: number | null
  revision: number
  chunks_done: number
  rows_done: number
  counts: Partial<Counts>
  reasons: ReasonCounts
  summed_at: number
  active_at: number
  stalls: number
  stalled_at: number | null
  sampled_at: number | null
}

export const BATCH_COLUMNS = `batch_no, client_id, batch_id, entity_id, record_kind, token_scope, chunk_records, layout, accepted_at, created_at,
extent_chunks, extent_rows, source_name, source_sha256, limit_chunks, paused_at, cancelled_at, finished_at, revision, chunks_done,
rows_done, counts, reasons, summed_at, active_at, stalls, stalled_at, sampled_at`

export function batchOf(row: BatchRow): Batch {
  return {
    batchNo: row.batch_no,
    clientId: row.client_id,
    batchId: row.batch_id,
    entityId: row.entity_id,
    recordKind: row.record_kind,
    tokenScope: row.token_scope,
    chunkRecords: row.chunk_records,
    layout: row.layout,
    acceptedAt: row.accepted_at,
    createdAt: row.created_at,
    extent: extentOf(row),
    extentChunks: row.extent_chunks,
    limitChunks: row.limit_chunks,
    pausedAt: row.paused_at,
    cancelledAt: row.cancelled_at,
    finishedAt: row.finished_at,
    revision: row.revision,
    chunksDone: row.chunks_done,
    rowsDone: row.rows_done,
    counts: { ...noCounts(), ...row.counts },
    reasons: row.reasons,
    summedAt: row.summed_at,
    activeAt: row.active_at,
    stalls: row.stalls,
    stalledAt: row.stalled_at,
    sampledAt: row.sampled_at,
  }
}

function extentOf(row: BatchRow): KnownExtent | null {
  if (row.extent_chunks === null) return null
  return { chunks: row.extent_chunks, rows: row.extent_rows, name: row.source_name, sha256: row.source_sha256 }
}
