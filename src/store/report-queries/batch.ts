// The outcomes of a batch. Lines come from the records that each chunk's receipt lists, sums from the counts that were
// stored with each receipt. A batch belongs to the entity of its scope. If its records name their scopes themselves, it
// belongs to the entity of its client, provided that the client acts for no other.
import { OUTCOMES } from '../../job/outcome.ts'
import type { RowsQuery } from './query.ts'

const RECEIPTS = `tokenmill.receipt as r join tokenmill.batch as b on b.batch_no = r.batch_no
join tokenmill.client as c on c.client_id = b.client_id left join tokenmill.scope as s on s.token_scope = b.token_scope
where b.batch_id = $2 and case when b.token_scope is null then $1::uuid = all(c.entities) else s.entity_id = $1::uuid end
  and r.kind = 'token-batch' and r.outcomes is not null`

const NAMES = `(array['${OUTCOMES.join("','")}'])`

// The packed form that src/job/chunk-outcomes.ts writes: [line, outcome, token, reference, reason, field, …]. A record
// without a reason that goes on behind it has null there, in some receipts 0.
const LISTED = `with listed as (
  select r.chunk, ${NAMES}[(record->>1)::int + 1] as outcome, coalesce(nullif(record->>4, '0'), '') as reason
  from (select r.chunk, r.outcomes from ${RECEIPTS}) as r cross join lateral jsonb_array_elements(r.outcomes::jsonb) as record
), line as (
  select outcome, reason, count(distinct chunk) as chunks, count(*) as records from listed group by outcome, reason
)`

const COUNTED = `with counted as (
  select o.outcome, sum((r.counts->>o.outcome)::bigint) as records
  from (select r.counts from ${RECEIPTS}) as r cross join unnest(array['${OUTCOMES.join("','")}']) as o(outcome)
  group by o.outcome having sum((r.counts->>o.outcome)::bigint) > 0
)`
const REASONS_OF = `(select count(*) from line where line.outcome = counted.outcome)`

export const BATCH: RowsQuery = {
  values: ['batchId'],
  lines: `${LISTED} select outcome as "outcome", reason as "reason", chunks::text as "chunks", records::text as "records"
from line order by outcome collate "C", reason collate "C"`,
  groups: `${LISTED}, ${COUNTED.slice('with '.length)} select outcome as "outcome", ${REASONS_OF}::text as "lines", records::text as "records"
from counted order by outcome collate "C"`,
  totals: `${LISTED}, ${COUNTED.slice('with '.length)} select (select count(*) from line)::text as "lines", sum(records)::text as "records"
from counted having count(*) > 0`,
}
