// Sums the outcomes of a batch's answered chunks, from their receipts and from chunks that came over HTTP and ended
// without a receipt. It only reads; batches.ts writes the sums into the batch's row.
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import { type Counts, noCounts, OUTCOMES, sumOf } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'

export interface BatchSums {
  chunks: number
  rows: number
  counts: Counts
  reasons: ReasonCounts
  /** When the last chunk was answered, ms since the epoch; null if none was. */
  lastAt: number | null
}

// Receipts are partitioned by week: partitions from before the batch aren't searched.
const RECEIPTS = `from tokenmill.receipt where batch_no = $1
  and day >= (select created_at::date - 1 from tokenmill.batch where batch_no = $1)`
const WITHOUT_RECEIPT = `from tokenmill.batch as b join tokenmill.intake as i on i.client_id = b.client_id and i.batch_id = b.batch_id
    and i.state <> 'RECEIVING' and not i.dry_run
  join tokenmill.intake_chunk as c on c.intake_no = i.intake_no and c.state in ('REFUSED', 'EXPIRED')
  where b.batch_no = $1 and not exists (select from tokenmill.receipt where receipt_id = c.receipt_id and batch_no = $1)`
const SUMS = OUTCOMES.map(outcome => `coalesce(sum((counts->>'${outcome}')::bigint), 0)::bigint as "${outcome}"`).join(
  ', ',
)

export async function sumChunks(db: Db, batchNo: number): Promise<BatchSums> {
  const values = [batchNo]
  const [summed, reasons] = await Promise.all([
    db.query<Record<string, number> & { last_at: number | null }>({
      name: 'batch-sums',
      text: `select count(*) as chunks, max(at) as last_at, ${SUMS} from (
  select counts, completed_at as at ${RECEIPTS}
  union all select jsonb_build_object(case when c.code = 500 then 'FAILED' else 'REJECTED' end, c.records), null ${WITHOUT_RECEIPT}
) as ended`,
      values,
    }),
    db.query<{ outcome: keyof Counts; reasons: Record<string, number> }>({
      name: 'batch-reasons',
      text: `select outcome, jsonb_object_agg(reason, n) as reasons from (
  select outcome, reason, sum(n) as n from (
    select o.key as outcome, r.key as reason, r.value::bigint as n
    from (select reasons ${RECEIPTS} and reasons is not null) as told
    cross join lateral jsonb_each(told.reasons) as o cross join lateral jsonb_each_text(o.value) as r
    union all select case when c.code = 500 then 'FAILED' else 'REJECTED' end, coalesce(c.reason, 'internal'), c.records ${WITHOUT_RECEIPT}
  ) as each_reason group by outcome, reason
) as by_reason group by outcome`,
      values,
    }),
  ])
  const row = summed.rows[0]
  const counts = noCounts()
  for (const outcome of OUTCOMES) counts[outcome] = row?.[outcome] ?? 0
  return {
    chunks: row?.['chunks'] ?? 0,
    rows: sumOf(counts),
    counts,
    reasons: Object.fromEntries(reasons.rows.map(found => [found.outcome, found.reasons])),
    lastAt: row?.last_at ?? null,
  }
}

const SPEED_MS = 60_000

/** The batch's speed in rows per second: over the last minute, or since it began if that is less. */
export async function batchSpeed(
  db: Db,
  { batchNo, createdAt }: { batchNo: number; createdAt: number },
  now: number,
): Promise<number> {
  const since = Math.max(createdAt, now - SPEED_MS)
  const rows = OUTCOMES.map(outcome => `(counts->>'${outcome}')::bigint`).join(' + ')
  const { rows: found } = await db.query<{ rows: number }>({
    text: `select coalesce(sum(${rows}), 0)::bigint as rows ${RECEIPTS} and completed_at >= $2`,
    values: [batchNo, new Date(since)],
  })
  return ((found[0]?.rows ?? 0) * 1000) / Math.max(1_000, now - since)
}
