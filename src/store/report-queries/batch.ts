// The outcomes of a batch. Lines come from the records that each chunk's receipt lists, sums from the counts that were
// stored with each receipt. A batch belongs to the entity of its scope. If its records name their scopes themselves, it
// belongs to the entity of the envelopes that sent it: not to the entities of its client, which may change.
import { OUTCOMES } from '../../job/outcome.ts'
import type { Db } from '../pool.ts'
import type { RowsQuery } from './query.ts'

const OWN = `tokenmill.batch as b left join tokenmill.scope as s on s.token_scope = b.token_scope
where b.batch_id = $2 and ($3::text is null or b.client_id = $3)
  and case when b.token_scope is null then b.entity_id else s.entity_id end = $1::uuid and b.record_kind <> 'transaction'`

// Several clients may each have a batch of this id. They are never added up.
const RECEIPTS = `tokenmill.receipt as r where r.batch_no = (select b.batch_no from ${OWN} order by b.batch_no limit 1)
  and r.kind = 'token-batch' and r.outcomes is not null`

/** Whether several clients have a batch of this id that belongs to the entity. */
export async function isOfSeveral(db: Db, entityId: string, batchId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `select
from ${OWN}
limit 2`,
    values: [entityId, batchId, null],
  })
  return count > 1
}

const NAMES = `(array['${OUTCOMES.join("','")}'])`

// The packed form that src/job/chunk-outcomes.ts writes: [line, outcome, token, reference, reason, field, …]. A record
// without a reason that goes on behind it has null there, in some receipts 0.
const LISTED = `with listed as (
  select r.chunk, ${NAMES}[(record->>1)::int + 1] as outcome, coalesce(nullif(record->>4, '0'), '') as reason
  from (select r.chunk, r.outcomes from ${RECEIPTS}) as r
  cross join lateral jsonb_array_elements(r.outcomes::jsonb) as record
), line as (
  select
    outcome,
    reason,
    count(distinct chunk) as chunks,
    count(*) as records
  from listed
  group by outcome, reason
)`

const COUNTED = `with counted as (
  select o.outcome, sum((r.counts->>o.outcome)::bigint) as records
  from (select r.counts from ${RECEIPTS}) as r
  cross join unnest(array['${OUTCOMES.join("','")}']) as o(outcome)
  group by o.outcome
  having sum((r.counts->>o.outcome)::bigint) > 0
)`
const REASONS_OF = `(select count(*) from line where line.outcome = counted.outcome)`

export const BATCH: RowsQuery = {
  values: ['batchId', 'clientId'],
  lines: `${LISTED} select outcome as "outcome", reason as "reason", chunks::text as "chunks", records::text as "records"
from line order by outcome collate "C", reason collate "C"`,
  groups: `${LISTED}, ${COUNTED.slice('with '.length)} select outcome as "outcome", ${REASONS_OF}::text as "lines", records::text as "records"
from counted order by outcome collate "C"`,
  totals: `${LISTED}, ${COUNTED.slice('with '.length)} select (select count(*) from line)::text as "lines", sum(records)::text as "records"
from counted having count(*) > 0`,
}
