// Sums the outcomes of a batch's answered chunks, from their receipts and from chunks that came over HTTP and ended
// without a receipt, and finds batches whose sums may be outdated. It only reads; batches.ts writes the sums into the
// batch's row.
import type { ReasonCounts } from '../../job/chunk-outcomes.ts'
import { type Counts, noCounts, OUTCOMES, sumOf } from '../../job/outcome.ts'
import type { Coder } from '../codes.ts'
import { isProvedByDigest } from '../job/receipt.ts'
import * as receipts from '../job/receipts.ts'
import type { Db } from '../pool.ts'
import { BATCH_LIFE } from './batch-state.ts'

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

/** `isWhole` false: of chunks that ended without a receipt alone. */
export async function sumChunks(db: Db, batchNo: number, isWhole = true): Promise<BatchSums> {
  const values = [batchNo]
  const name = isWhole ? '' : '-without-receipt'
  const [summed, reasons] = await Promise.all([
    db.query<Record<string, number> & { lastAt: number | null }>({
      name: `batch-sums${name}`,
      text: `select count(*) as chunks, max(at) as "lastAt", ${SUMS}
from (
  select counts, completed_at as at ${RECEIPTS} and ${isWhole}
  union all
  select jsonb_build_object(case when c.code = 500 then 'FAILED' else 'REJECTED' end, c.records), null ${WITHOUT_RECEIPT}
) as ended`,
      values,
    }),
    db.query<{ outcome: keyof Counts; reasons: Record<string, number> }>({
      name: `batch-reasons${name}`,
      text: `select outcome, jsonb_object_agg(reason, n) as reasons
from (
  select outcome, reason, sum(n) as n
  from (
    select o.key as outcome, r.key as reason, r.value::bigint as n
    from (select reasons ${RECEIPTS} and reasons is not null and ${isWhole}) as told
    cross join lateral jsonb_each(told.reasons) as o
    cross join lateral jsonb_each_text(o.value) as r
    union all
    select case when c.code = 500 then 'FAILED' else 'REJECTED' end, coalesce(c.reason, 'internal'), c.records ${WITHOUT_RECEIPT}
  ) as each_reason
  group by outcome, reason
) as by_reason
group by outcome`,
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
    lastAt: row?.lastAt ?? null,
  }
}

const PROOF_ROWS = 200

/**
 * The same sums, of receipts that tokenmill wrote as they are, each of which is checked; or the ids of those that it didn't.
 * What is told of a batch's end is summed so.
 */
export async function sumProved(
  db: Db,
  coder: Pick<Coder, 'receiptMacBy'>,
  batchNo: number,
): Promise<BatchSums | { unproved: string[] }> {
  const sums = await sumChunks(db, batchNo, false)
  const unproved: string[] = []
  for (let after = -1; ; ) {
    const page = await receipts.chunksAfter(db, batchNo, after, PROOF_ROWS)
    for (const receipt of page) {
      if (isProvedByDigest(coder, receipt, receipt.outcomesDigest)) add(sums, receipt)
      else unproved.push(receipt.receiptId)
    }
    const last = page.at(-1)
    if (!last || page.length < PROOF_ROWS) break
    after = last.chunk ?? after
  }
  return unproved.length > 0 ? { unproved } : { ...sums, rows: sumOf(sums.counts) }
}

function add(sums: BatchSums, { counts, reasons, completedAt }: receipts.ChunkReceipt): void {
  sums.chunks += 1
  sums.lastAt = Math.max(sums.lastAt ?? completedAt, completedAt)
  for (const outcome of OUTCOMES) sums.counts[outcome] += counts?.[outcome] ?? 0
  for (const [outcome, some] of Object.entries(reasons ?? {}) as [keyof Counts, Record<string, number>][]) {
    const known = { ...sums.reasons[outcome] }
    for (const [reason, n] of Object.entries(some)) known[reason] = (known[reason] ?? 0) + n
    sums.reasons[outcome] = known
  }
}

const SPEED_MS = 60_000
/** How many receipts a speed is computed from at most: those of the batch's last chunks, by the index of its chunks. */
const SPEED_CHUNKS = 200
const ROWS = OUTCOMES.map(outcome => `coalesce((r.counts->>'${outcome}')::bigint, 0)`).join(' + ')

/**
 * Rows per second over the last minute, over the time since the batch began if that is less, or over the time of its last
 * chunks if those were more. It reads a bounded number of receipts. `batch`: SQL for
 * the batch's number, with its values.
 */
export async function speedOf(
  db: Db,
  { createdAt, now }: { createdAt: number; now: number },
  { batch, values }: { batch: string; values: readonly unknown[] },
): Promise<number> {
  const since = Math.max(createdAt, now - SPEED_MS)
  const next = values.length + 1
  const { rows } = await db.query<{ chunks: number; rows: number; first: number | null }>({
    text: `select count(*) as chunks, coalesce(sum(${ROWS}), 0)::bigint as rows, min(r.completed_at) as first
from (
  select r.counts, r.completed_at
  from tokenmill.receipt as r
  where r.batch_no = ${batch} and r.day >= $${next}::date - 1
  order by r.chunk desc
  limit ${SPEED_CHUNKS}
) as r
where r.completed_at >= $${next + 1}`,
    values: [...values, new Date(createdAt), new Date(since)],
  })
  const [found] = rows
  if (!found || found.first === null) return 0
  const from = found.chunks < SPEED_CHUNKS ? since : found.first
  return (found.rows * 1000) / Math.max(1_000, now - from)
}

/** The speed of one batch, as above. `createdAt`, `now`: ms since the epoch. */
export function batchSpeed(
  db: Db,
  { batchNo, createdAt }: { batchNo: number; createdAt: number },
  now: number,
): Promise<number> {
  return speedOf(db, { createdAt, now }, { batch: '$1::bigint', values: [batchNo] })
}

/**
 * Batches whose sums a crash may have left outdated: up to `limit` that know their extent and up to `limit` that don't,
 * those that were summed longest ago. Batches that were abandoned by `now` (ms since the epoch) are left out.
 */
export async function findUnsettled(db: Db, limit: number, now: number): Promise<number[]> {
  const { rows } = await db.query<{ batchNo: number }>({
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
