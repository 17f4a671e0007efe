// The points of a batch's chart (src/store/batch/batch-samples.ts). It only reads.
import type { SampledState } from '../batch/batch-state.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface SeenSample {
  /** ms since the epoch. */
  at: number
  rowsDone: number
  rowsRefused: number
  state: SampledState
}

/** The limit is above what a batch ever has. */
const SAMPLES_MAX = 500

/** Oldest first. None for a batch of somebody else, as for one that isn't there. */
export async function list(sight: Sight, db: Db, batchNo: number): Promise<SeenSample[]> {
  const { rows } = await db.query<SeenSample>({
    text: `select
  s.at,
  s.rows_done as "rowsDone",
  s.rows_refused as "rowsRefused",
  s.state
from tokenmill.batch_sample as s
where s.batch_no = (select b.batch_no from tokenmill.batch as b where ($1::uuid[] is null or b.entity_id = any($1)) and b.batch_no = $2)
order by s.at
limit ${SAMPLES_MAX}`,
    values: [entitiesOf(sight), batchNo],
  })
  return rows
}
