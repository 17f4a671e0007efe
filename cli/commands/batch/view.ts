// Finds one batch and prints it, for the batch commands.
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import type { Db } from '../../../src/store/pool.ts'
import { ALL } from '../../../src/store/sight.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { moment } from '../../terminal.ts'

export type ClientOption = JsonOption & { client?: string }

/** The batch with this id; if several clients have one, that of `clientId`. */
export async function findOne(db: Db, id: string, clientId: string | undefined): Promise<Batch> {
  const [batch, ...others] = await batchList.findById(ALL, db, { batchId: id, clientId }, WHOLE_BATCH)
  if (!batch) throw new Stop('There is no such batch; `tokenmill batch list` shows those there are.')
  if (others.length > 0) throw new Stop('Several clients have a batch of this id; name one with --client.')
  return batch
}

const optional = (ms: number | null) => (ms === null ? null : moment(ms))

export function shownBatch(batch: Batch, now: number) {
  return {
    batch_id: batch.batchId,
    client_id: batch.clientId,
    record_kind: batch.recordKind,
    token_scope: batch.tokenScope,
    chunk_records: batch.chunkRecords,
    state: stateOf(batch, now),
    accepted_at: moment(batch.acceptedAt),
    created_at: moment(batch.createdAt),
    active_at: moment(batch.activeAt),
    paused_at: optional(batch.pausedAt),
    cancelled_at: optional(batch.cancelledAt),
    finished_at: optional(batch.finishedAt),
    revision: batch.revision,
    source_name: batch.extent?.name ?? null,
    source_sha256: batch.extent?.sha256 ?? null,
    chunks: batch.extentChunks,
    chunks_done: batch.chunksDone,
    records: batch.extent?.rows ?? null,
    records_done: batch.rowsDone,
    counts: batch.counts,
    reasons: batch.reasons,
  }
}
