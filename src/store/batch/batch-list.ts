// Batches as people ask for them: lists by client, state and age, and those whose sums may lag behind. It reads only.
import type { Db } from '../pool.ts'
import { BATCH_COLUMNS, type Batch, type BatchRow, batchOf } from './batch-row.ts'
import { BATCH_LIFE } from './batch-state.ts'

export interface ListedBatches {
  clientId?: string | undefined
  /** Only those that are neither finished nor cancelled. */
  isOpen?: boolean | undefined
  /** ms since the epoch: those that began at it or later. */
  since?: number | undefined
  /** Judged here: a state follows from the row and the time. */
  accepts?: ((batch: Batch) => boolean) | undefined
  /** Older ones than this number. */
  before?: number | undefined
  limit: number
}

/** Rows read at once where not every row is one. */
const PAGE = 500

/** Newest first. */
export async function list(db: Db, asked: ListedBatches): Promise<Batch[]> {
  const { clientId, since, before = Number.MAX_SAFE_INTEGER, isOpen = false, limit, accepts } = asked
  const size = accepts ? Math.max(limit, PAGE) : limit
  const found: Batch[] = []
  for (let below = before; found.length < limit; ) {
    const { rows } = await db.query<BatchRow>({
      text: `select ${BATCH_COLUMNS} from tokenmill.batch
where batch_no < $1 and ($2::text is null or client_id = $2) and ($3::timestamptz is null or created_at >= $3)
  and (not $4 or (cancelled_at is null and finished_at is null))
order by batch_no desc limit $5`,
      values: [below, clientId, since === undefined ? null : new Date(since), isOpen, size],
    })
    const batches = rows.map(batchOf)
    found.push(...(accepts ? batches.filter(accepts) : batches))
    const last = batches.at(-1)
    if (!last || batches.length < size) break
    below = last.batchNo
  }
  return found.slice(0, limit)
}

export async function findById(db: Db, batchId: string): Promise<Batch[]> {
  const { rows } = await db.query<BatchRow>({
    text: `select ${BATCH_COLUMNS} from tokenmill.batch where batch_id = $1`,
    values: [batchId],
  })
  return rows.map(batchOf)
}

/** Those whose sums a crash may have left behind, longest ago first: of those that know their extent, and of the others. */
export async function findUnsettled(db: Db, limit: number, now: number): Promise<number[]> {
  const { rows } = await db.query<{ batch_no: number }>({
    text: `select batch_no from (select batch_no, row_number() over (partition by extent_chunks is null order by summed_at) as turn
  from tokenmill.batch where (finished_at is null or coalesce((counts->>'FAILED')::bigint, 0) > 0) and active_at > $1) as open
where turn <= $2`,
    values: [new Date(now - BATCH_LIFE.abandonedMs), limit],
  })
  return rows.map(row => row.batch_no)
}
