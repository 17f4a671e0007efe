// The activity of an entity's tokens by scope and day (UTC), from token rows and receipts. A line counts one day of one
// scope. Sums of groups and totals are counted from the tables again, not from the lines.
import type { RowsQuery } from './query.ts'

// Every event of the period as one row: its scope, its day, and the column in which it counts.
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
    and r.completed_at >= $2::date and r.completed_at < $3::date + 1
  union all
  select b.token_scope, r.completed_at::date, 'updated', (r.counts->>'UPDATED')::bigint
  from tokenmill.receipt as r join tokenmill.batch as b on b.batch_no = r.batch_no join mine on mine.token_scope = b.token_scope
  where b.record_kind in ('token-create', 'token-update') and (r.counts->>'UPDATED')::bigint > 0
    and r.completed_at >= $2::date and r.completed_at < $3::date + 1
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
}
