// The points of a batch's chart: how many rows were done when, and whether the batch was paused or stalled from then on.
// batches.ts decides when a point is due; this file writes it.
import type { Db } from '../pool.ts'
import type { Batch } from './batch-row.ts'
import type { SampledState } from './batch-state.ts'

export const SAMPLES = {
  /** From this number on a batch's points are thinned. */
  most: 240,
} as const

/**
 * Adds a point. `at`: ms since the epoch; undefined: now. Points of a batch come in the order of their times, so one that would
 * be before the last comes right after it.
 */
export async function add(db: Db, batch: Batch, state: SampledState, at?: number): Promise<void> {
  const { batchNo, rowsDone, counts } = batch
  await db.query({
    name: 'batch-sample-add',
    text: `insert into tokenmill.batch_sample (
  batch_no,
  at,
  rows_done,
  rows_refused,
  state
)
select
  $1,
  greatest(least(coalesce($5::timestamptz, clock_timestamp()), clock_timestamp()), max(at) + interval '1 ms'),
  $2::bigint,
  least($3::bigint, $2::bigint),
  $4
from tokenmill.batch_sample
where batch_no = $1`,
    values: [batchNo, rowsDone, counts.REJECTED + counts.FAILED, state, at === undefined ? null : new Date(at)],
  })
}

/** The first point of a batch whose rows were all outstanding until now: none was done when it began. */
export async function begin(db: Db, { batchNo }: Batch): Promise<void> {
  await db.query({
    text: `insert into tokenmill.batch_sample (
  batch_no,
  at,
  rows_done,
  rows_refused,
  state
)
select
  batch_no,
  created_at,
  0,
  0,
  'RUNNING'
from tokenmill.batch
where batch_no = $1
on conflict do nothing`,
    values: [batchNo],
  })
}

/**
 * Removes every second point if there are as many as may be; returns how many it removed. The first and the last point stay,
 * and a point where the state changes, as long as at least half of all are others.
 */
export async function thin(db: Db, batchNo: number): Promise<number> {
  const { count } = await db.query({
    name: 'batch-sample-thin',
    text: `with point as (
  select at, state is distinct from lag(state) over (order by at) as is_change, at = max(at) over () as is_last
  from tokenmill.batch_sample
  where batch_no = $1
), counted as (
  select
    at,
    is_change,
    is_last,
    count(*) over () as points,
    count(*) filter (where is_change) over () as changes
  from point
), numbered as (
  select at, row_number() over (order by at) as place
  from counted
  where points >= $2 and not is_last and (not is_change or changes > $2 / 2)
)
delete from tokenmill.batch_sample
where batch_no = $1 and at in (select at from numbered where place % 2 = 0)`,
    values: [batchNo, SAMPLES.most],
  })
  return count
}

/** Erases up to `page` points of batches without activity since `before` (ms since the epoch); returns how many. */
export async function eraseOld(db: Db, before: number, page: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.batch_sample
  where (batch_no, at) in (
  select s.batch_no, s.at
  from tokenmill.batch_sample as s
  join tokenmill.batch as b on b.batch_no = s.batch_no
  where s.at < $1 and b.active_at < $1
  limit $2
)`,
    values: [new Date(before), page],
  })
  return count
}
