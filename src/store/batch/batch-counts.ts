// Counts open batches by state, for metrics. (src/job/chunk-outcomes.ts counts the records of a chunk.) The SQL states
// the same rule as `stateOf` in batch-state.ts; a test compares the two.
import type { Db } from '../pool.ts'
import { BATCH_LIFE, BATCH_STATES, type BatchState } from './batch-state.ts'

export type OpenState = Exclude<BatchState, 'CANCELLED' | 'FINISHED'>

const isOpenState = (state: BatchState): state is OpenState => state !== 'CANCELLED' && state !== 'FINISHED'

/** One row per state of an open batch; states without a batch have 0. `now`: ms since the epoch. */
export async function countOpen(db: Db, now: number): Promise<{ state: OpenState; batches: number }[]> {
  const { rows } = await db.query<{ state: OpenState; batches: number }>({
    text: `select case
  when paused_at is not null or chunks_done >= limit_chunks then 'PAUSED'
  when active_at <= $1 then 'ABANDONED'
  when chunks_done < extent_chunks and active_at <= $2 then 'STALLED'
  when extent_chunks is null then 'OPEN' else 'RUNNING' end as state, count(*) as batches
from tokenmill.batch where cancelled_at is null and finished_at is null group by 1`,
    values: [new Date(now - BATCH_LIFE.abandonedMs), new Date(now - BATCH_LIFE.stalledMs)],
  })
  return BATCH_STATES.filter(isOpenState).map(state => ({
    state,
    batches: rows.find(row => row.state === state)?.batches ?? 0,
  }))
}
