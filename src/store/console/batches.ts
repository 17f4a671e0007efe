// One batch as the console shows it; src/store/batch/batch-list.ts has the lists. A row without an entity (its chunks are of several) is
// seen only by people for all entities. It only reads.
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import { type Counts, noCounts } from '../../job/outcome.ts'
import type { BatchShape } from '../batch/batch-row.ts'
import type { BatchLife } from '../batch/batch-state.ts'
import { speedOf } from '../batch/batch-sums.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface SeenBatch extends BatchLife {
  batchNo: number
  batchId: string
  clientId: string
  clientName: string | null
  recordKind: string
  tokenScope: string | null
  /** ms since the epoch. */
  createdAt: number
  /** Null: no chunk has said how many rows there are. */
  extentRows: number | null
  rowsDone: number
  sourceName: string | null
  sourceSha256: string | null
  revision: number
  counts: Counts
  reasons: ReasonCounts
}

interface SeenRow extends Omit<SeenBatch, 'counts'> {
  counts: Partial<Counts>
}

const COLUMNS = `b.batch_no as "batchNo", b.batch_id as "batchId", b.client_id as "clientId", c.name as "clientName",
b.record_kind as "recordKind", b.token_scope as "tokenScope", b.created_at as "createdAt", b.extent_chunks as "extentChunks",
b.extent_rows as "extentRows", b.limit_chunks as "limitChunks", b.chunks_done as "chunksDone", b.rows_done as "rowsDone",
b.paused_at as "pausedAt", b.cancelled_at as "cancelledAt", b.finished_at as "finishedAt", b.active_at as "activeAt",
b.source_name as "sourceName", b.source_sha256 as "sourceSha256", b.revision, b.counts, b.reasons`

const CLIENT = 'left join tokenmill.client as c on c.client_id = b.client_id'

/** As the console may read it. */
export const SEEN_BATCH: BatchShape<SeenRow, SeenBatch> = { columns: COLUMNS, join: CLIENT, of: seenOf }

const SEEN = '($1::uuid[] is null or b.entity_id = any($1))'

/** Undefined for a batch of somebody else, as for one that isn't there. */
export async function find(sight: Sight, db: Db, batchNo: number): Promise<SeenBatch | undefined> {
  const { rows } = await db.query<SeenRow>({
    text: `select ${COLUMNS}
from tokenmill.batch as b ${CLIENT}
where ${SEEN} and b.batch_no = $2`,
    values: [entitiesOf(sight), batchNo],
  })
  return rows[0] && seenOf(rows[0])
}

/** Rows per second, by the same rule as `batch show`; 0 for a batch of somebody else. */
export function findSpeed(
  sight: Sight,
  db: Db,
  { batchNo, createdAt, now }: { batchNo: number; createdAt: number; now: number },
): Promise<number> {
  const batch = `(select b.batch_no from tokenmill.batch as b where ${SEEN} and b.batch_no = $2)`
  return speedOf(db, { createdAt, now }, { batch, values: [entitiesOf(sight), batchNo] })
}

function seenOf(row: SeenRow): SeenBatch {
  return { ...row, counts: { ...noCounts(), ...row.counts } }
}
