// The rows of a batch that were REJECTED or FAILED: their lines and reasons, read chunk by chunk from the receipts. The console
// can't read a receipt's outcomes, which hold references and token ids; a function in the store gives it these columns alone.
import { OUTCOMES, type Outcome } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface RefusedRow {
  chunk: number
  /** Counted from 1 in its chunk. */
  place: number
  /** The line of the source. */
  line: number
  outcome: Outcome
  /** A word of REASONS, or one that isn't known here. */
  reason: string | null
}

const SEEN = '($1::uuid[] is null or b.entity_id = any($1))'
const REFUSED = `coalesce((r.counts->>'REJECTED')::bigint, 0) + coalesce((r.counts->>'FAILED')::bigint, 0)`

/**
 * Looks at up to `limit` answered chunks from the number `from` on. `chunks`: those with refused rows; `last`: the last one that
 * was looked at; null: there is none from there on.
 */
export async function findChunks(
  sight: Sight,
  db: Db,
  { batchNo, from, limit }: { batchNo: number; from: number; limit: number },
): Promise<{ chunks: number[]; last: number | null }> {
  const { rows } = await db.query<{ chunks: number[] | null; last: number | null }>({
    text: `select array_agg(chunk order by chunk) filter (where refused > 0) as chunks, max(chunk) as last
from tokenmill.batch as b
cross join lateral (
  select r.chunk, ${REFUSED} as refused
  from tokenmill.receipt as r
  where r.batch_no = b.batch_no and r.day >= b.created_at::date - 1 and r.chunk >= $3
  order by r.chunk
  limit $4
) as looked
where ${SEEN} and b.batch_no = $2`,
    values: [entitiesOf(sight), batchNo, from, limit],
  })
  return { chunks: rows[0]?.chunks ?? [], last: rows[0]?.last ?? null }
}

/** Up to `limit` refused rows of a chunk behind the place `after` (0: from the first). */
export async function list(
  sight: Sight,
  db: Db,
  { batchNo, chunk, after, limit }: { batchNo: number; chunk: number; after: number; limit: number },
): Promise<RefusedRow[]> {
  const { rows } = await db.query<{ place: number; line: number; outcome: number; reason: string | null }>({
    text: `select
  row.place,
  row.line,
  row.outcome,
  row.reason
from tokenmill.batch as b
cross join lateral tokenmill.refused_rows(b.batch_no, b.created_at::date - 1, $3, $4, $5) as row
where ${SEEN} and b.batch_no = $2
order by row.place`,
    values: [entitiesOf(sight), batchNo, chunk, after, limit],
  })
  return rows.map(row => ({ ...row, chunk, outcome: OUTCOMES[row.outcome] ?? 'FAILED' }))
}
