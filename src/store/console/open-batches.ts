// The batches that are open, in the order in which they need somebody. It only reads.
import { BATCH_LIFE, type BatchLife } from '../batch/batch-state.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface OpenBatch extends BatchLife {
  batchNo: number
  batchId: string
  clientId: string
  /** ms since the epoch. */
  createdAt: number
  extentRows: number | null
  rowsDone: number
}

/**
 * Batches that are neither ended nor abandoned: first those that are stalled, then those that go on, then those that are
 * paused; within these the one that was active last. `now`: ms since the epoch.
 */
export async function listOpen(
  sight: Sight,
  db: Db,
  { now, limit }: { now: number; limit: number },
): Promise<OpenBatch[]> {
  const { rows } = await db.query<OpenBatch>({
    name: 'seen-open-batches',
    text: `select
  b.batch_no as "batchNo",
  b.batch_id as "batchId",
  b.client_id as "clientId",
  b.created_at as "createdAt",
  b.extent_rows as "extentRows",
  b.rows_done as "rowsDone",
  b.extent_chunks as "extentChunks",
  b.limit_chunks as "limitChunks",
  b.chunks_done as "chunksDone",
  b.paused_at as "pausedAt",
  b.cancelled_at as "cancelledAt",
  b.finished_at as "finishedAt",
  b.active_at as "activeAt"
from tokenmill.batch as b
where ($1::uuid[] is null or b.entity_id = any($1)) and b.cancelled_at is null and b.finished_at is null and b.active_at > $2
order by case when b.paused_at is not null or b.chunks_done >= b.limit_chunks then 2
  when b.chunks_done < b.extent_chunks and b.active_at <= $3 then 0 else 1 end, b.active_at desc, b.batch_no desc
limit $4`,
    values: [entitiesOf(sight), new Date(now - BATCH_LIFE.abandonedMs), new Date(now - BATCH_LIFE.stalledMs), limit],
  })
  return rows
}
