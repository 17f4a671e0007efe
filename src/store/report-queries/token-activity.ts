// The activity of an entity's tokens by scope and day (UTC), from token rows and receipts. A line counts one day of one
// scope. Sums of groups and totals are counted from the tables again, not from the lines.
import { OUTCOMES } from '../../job/outcome.ts'
import type { RowsQuery } from './query.ts'

const UPDATED = OUTCOMES.indexOf('UPDATED')

// A receipt's `day`, which is its partition's, is the day of its first answer. Only a chunk is answered with other
// outcomes later: its batch takes it for 7 days, and it may wait for 7 more.
const AGAIN_DAYS = 16
const ENDED = `r.completed_at >= $2::date and r.completed_at < $3::date + 1`
const CHUNKS = `tokenmill.receipt as r join tokenmill.batch as b on b.batch_no = r.batch_no`
const CHANGED = `b.record_kind in ('token-create', 'token-update') and (r.counts->>'UPDATED')::bigint > 0
    and r.day between $2::date - ${AGAIN_DAYS} and $3::date + 1 and ${ENDED}`

// Every event of the period as one row: its scope, its day, and the column in which it counts. The records of a batch
// without a scope may be of several: they count in the scopes of their tokens, which the packed outcomes name
// (src/job/chunk-outcomes.ts). To unpack the batches of all entities would take too long.
const EVENTS = `event as (
  select t.token_scope as scope, t.created_at::date as day, 'created' as what, 1::bigint as n
  from tokenmill.token as t join mine on mine.token_scope = t.token_scope
  where t.created_at >= $2::date and t.created_at < $3::date + 1
  union all
  select t.token_scope, t.updated_at::date, case t.status when 'DELETED' then 'deleted' else 'suspended' end, 1
  from tokenmill.token as t join mine on mine.token_scope = t.token_scope
  where t.status <> 'ACTIVE' and t.updated_at >= $2::date and t.updated_at < $3::date + 1
  union all
  select t.token_scope, r.completed_at::date, 'updated', 1
  from tokenmill.receipt as r join tokenmill.token as t on t.token_id = r.token_id join mine on mine.token_scope = t.token_scope
  where r.status = 'SUCCEEDED' and r.kind in ('token-create', 'token-update') and r.outcome = 'UPDATED'
    and r.day between $2::date - 1 and $3::date + 1 and ${ENDED}
  union all
  select b.token_scope, r.completed_at::date, 'updated', (r.counts->>'UPDATED')::bigint
  from ${CHUNKS} join mine on mine.token_scope = b.token_scope
  where ${CHANGED}
  union all
  select t.token_scope, r.completed_at::date, 'updated', 1
  from ${CHUNKS} cross join lateral jsonb_array_elements(r.outcomes::jsonb) as record
  join tokenmill.token as t on t.token_id = nullif(record->>2, '0')::uuid join mine on mine.token_scope = t.token_scope
  where b.token_scope is null and ${CHANGED} and record->1 = '${UPDATED}' and (b.entity_id is null or b.entity_id = $1
    or exists (select from tokenmill.client as c where c.client_id = b.client_id and $1::uuid = any(c.entities)))
)`
const WITH = `with mine as (select token_scope from tokenmill.scope where entity_id = $1), ${EVENTS}`

const COUNTS = ['created', 'updated', 'suspended', 'deleted']
  .map(what => `coalesce(sum(n) filter (where what = '${what}'), 0)::text as "${what}"`)
  .join(', ')

export const TOKEN_ACTIVITY: RowsQuery = {
  values: ['from', 'to'],
  lines: `${WITH} select scope::text as "tokenScope", day::text as "day", ${COUNTS} from event group by scope, day order by scope, event.day`,
  groups: `${WITH} select scope::text as "tokenScope", count(distinct day)::text as "lines", ${COUNTS} from event group by scope order by scope`,
  totals: `${WITH} select count(distinct (scope, day))::text as "lines", ${COUNTS} from event having count(*) > 0`,
  // Partitions are named by their first day.
  since: `select min(to_date(right(relname, 8), 'YYYYMMDD'))::text as "since"
from pg_inherits
join pg_class on pg_class.oid = inhrelid
where inhparent = 'tokenmill.receipt'::regclass`,
}
