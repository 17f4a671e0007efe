// Lists batches for people, by client, state and age, and finds batches whose sums may be outdated. It only reads.
import type { Db } from '../pool.ts'
import { BATCH_COLUMNS, type Batch, type BatchRow, batchOf } from './batch-row.ts'
import { BATCH_LIFE, type BatchState, stateOf } from './batch-state.ts'

export interface ListedBatches {
  clientId?: string | undefined
  /** Only batches that are neither finished nor cancelled. */
  isOpen?: boolean | undefined
  /** Only batches that began at this time or later, ms since the epoch. */
  since?: number | undefined
  /** Only batches that are in the state `is` at the time `now` (ms since the epoch). */
  state?: { is: BatchState; now: number } | undefined
  /** A further condition, checked after the rows are read, because a batch's state depends on the time. */
  accepts?: ((batch: Batch) => boolean) | undefined
  /** Only batches with a lower number than this. */
  before?: number | undefined
  limit: number
}

const OPEN = 'cancelled_at is null and finished_at is null'
/** SQL that finds all rows that may be in a state, and some others; `stateOf` then decides. $4 is the current time. */
const MAY_BE: Record<BatchState, string> = {
  CANCELLED: 'cancelled_at is not null',
  FINISHED: 'finished_at is not null',
  PAUSED: `${OPEN} and (paused_at is not null or limit_chunks is not null)`,
  ABANDONED: `${OPEN} and active_at <= $4::timestamptz - interval '${BATCH_LIFE.abandonedMs} ms'`,
  STALLED: `${OPEN} and chunks_done < extent_chunks and active_at <= $4::timestamptz - interval '${BATCH_LIFE.stalledMs} ms'`,
  OPEN: `${OPEN} and extent_chunks is null`,
  RUNNING: `${OPEN} and extent_chunks is not null`,
}

/** How many rows are read at once if not every row is listed. */
const PAGE = 500

/** Lists batches, newest first. */
export async function list(db: Db, asked: ListedBatches): Promise<Batch[]> {
  const { clientId, since, before = Number.MAX_SAFE_INTEGER, isOpen = false, limit, state } = asked
  const accepts = (batch: Batch) =>
    (!state || stateOf(batch, state.now) === state.is) && (asked.accepts?.(batch) ?? true)
  const size = state || asked.accepts ? Math.max(limit, PAGE) : limit
  const filter = state ? MAY_BE[state.is] : isOpen ? OPEN : 'true'
  const found: Batch[] = []
  for (let below = before; found.length < limit; ) {
    const { rows } = await db.query<BatchRow>({
      text: `select ${BATCH_COLUMNS}
from tokenmill.batch
where batch_no < $1 and ($2::text is null or client_id = $2) and ($3::timestamptz is null or created_at >= $3)
  and $4::timestamptz is not null and ${filter}
order by batch_no desc
limit $5`,
      values: [below, clientId, since === undefined ? null : new Date(since), new Date(state?.now ?? 0), size],
    })
    const batches = rows.map(batchOf)
    found.push(...batches.filter(accepts))
    const last = batches.at(-1)
    if (!last || batches.length < size) break
    below = last.batchNo
  }
  return found.slice(0, limit)
}

export async function findById(db: Db, batchId: string): Promise<Batch[]> {
  const { rows } = await db.query<BatchRow>({
    text: `select ${BATCH_COLUMNS}
from tokenmill.batch
where batch_id = $1`,
    values: [batchId],
  })
  return rows.map(batchOf)
}

/**
 * Batches whose sums a crash may have left outdated: up to `limit` that know their extent and up to `limit` that don't,
 * those that were summed longest ago. Batches that were abandoned by `now` (ms since the epoch) are left out.
 */
export async function findUnsettled(db: Db, limit: number, now: number): Promise<number[]> {
  const { rows } = await db.query<Pick<Batch, 'batchNo'>>({
    text: `select batch_no as "batchNo"
from (
  select batch_no, row_number() over (partition by extent_chunks is null order by summed_at) as turn
  from tokenmill.batch
  where (finished_at is null or coalesce((counts->>'FAILED')::bigint, 0) > 0) and active_at > $1
) as open
where turn <= $2`,
    values: [new Date(now - BATCH_LIFE.abandonedMs), limit],
  })
  return rows.map(({ batchNo }) => batchNo)
}
