// Counts open batches by state, for metrics. (src/job/chunk-outcomes.ts counts the records of a chunk.) The SQL states
// the same rule as `stateOf` in batch-state.ts; a test compares the two.

import { BATCH_STATES, type BatchState } from '../../job/choices.ts'
import type { Db } from '../pool.ts'
import { BATCH_LIFE } from './batch-state.ts'

export type OpenState = Exclude<BatchState, 'CANCELLED' | 'FINISHED'>

const isOpenState = (state: BatchState): state is OpenState => state !== 'CANCELLED' && state !== 'FINISHED'

/** SQL: the state of an open batch. `columns`: the prefix of its columns; the two others are the times that `timesOf` gives. */
export const openState = ({
  columns = '',
  abandoned,
  stalled,
}: {
  columns?: string
  abandoned: string
  stalled: string
}) =>
  `case when ${columns}paused_at is not null or ${columns}chunks_done >= ${columns}limit_chunks then 'PAUSED'
  when ${columns}active_at <= ${abandoned} then 'ABANDONED'
  when ${columns}chunks_done < ${columns}extent_chunks and ${columns}active_at <= ${stalled} then 'STALLED'
  when ${columns}extent_chunks is null then 'OPEN' else 'RUNNING' end`

/** A batch without activity since these times is abandoned or stalled. `now`: ms since the epoch. */
export function timesOf(now: number): { abandoned: Date; stalled: Date } {
  return { abandoned: new Date(now - BATCH_LIFE.abandonedMs), stalled: new Date(now - BATCH_LIFE.stalledMs) }
}

/** One row per state of an open batch; states without a batch have 0. `now`: ms since the epoch. */
export async function countOpen(db: Db, now: number): Promise<{ state: OpenState; batches: number }[]> {
  const { abandoned, stalled } = timesOf(now)
  const { rows } = await db.query<{ state: OpenState; batches: number }>({
    text: `select ${openState({ abandoned: '$1', stalled: '$2' })} as state, count(*) as batches
from tokenmill.batch
where cancelled_at is null and finished_at is null
group by 1`,
    values: [abandoned, stalled],
  })
  return BATCH_STATES.filter(isOpenState).map(state => ({
    state,
    batches: rows.find(row => row.state === state)?.batches ?? 0,
  }))
}
