// Reads the outcomes of the records of a batch that came over HTTP, chunk by chunk in the order of its rows. It writes
// nothing, and holds no connection between two pages.
import type { Db } from '../pool.ts'

export interface ChunkEnd {
  chunk: number
  state: 'WAITING' | 'SENT' | 'DONE' | 'REFUSED' | 'EXPIRED' | 'CANCELLED'
  /** The status of a chunk that ended without a receipt. */
  code: number | null
  reason: string | null
  /** JSON: `[line, reference?]` of each record; null if the chunk ended by its receipt. */
  lines: string | null
  /** The receipt's outcomes, packed (src/job/chunk-outcomes.ts). */
  outcomes: string | null
  /** The text of a dry run's answer, which has no receipt. */
  body: string | null
}

/**
 * Up to `limit` chunks after the number `after` (-1: from the first). If a receipt arrived late, the receipt counts.
 */
export async function page(db: Db, intakeNo: number, after: number, limit: number): Promise<ChunkEnd[]> {
  const { rows } = await db.query<ChunkEnd>({
    name: 'intake-results',
    text: `select
  c.chunk,
  c.state,
  c.code,
  c.reason,
  c.lines,
  r.outcomes,
  case when r.outcomes is null and c.state = 'DONE' then (
    select body
    from tokenmill.outbox
    where receipt_id = c.receipt_id
    and body is not null
    order by outbox_id desc
    limit 1
  ) end as body
from (
  select
    chunk,
    state,
    code,
    reason,
    lines,
    receipt_id
  from tokenmill.intake_chunk
  where intake_no = $1 and chunk > $2
  order by chunk
  limit $3
) as c
left join lateral (select outcomes from tokenmill.receipt where receipt_id = c.receipt_id and kind = 'token-batch' limit 1) as r on true
order by c.chunk`,
    values: [intakeNo, after, limit],
  })
  return rows
}
