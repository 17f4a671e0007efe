// The scheme tokens of an entity as they are now. Lines come from tokens joined with their current provisioning. The
// total is counted on the tokens alone, so a join that lost or doubled a token would show as a difference.
import type { RowsQuery } from './query.ts'

const STANDING = `with mine as (
  select token_scope
  from tokenmill.scope
  where entity_id = $1
), live as (
  select t.token_id, t.token_scope
  from tokenmill.token as t
  join mine on mine.token_scope = t.token_scope
  where t.status <> 'DELETED'
), standing as (
  select
    live.token_scope as scope,
    case when s.state is null or s.state = 'VOID' then '' else s.provider end as provider,
    case when s.state is null or s.state = 'VOID' then 'NONE' when s.retired_at is not null then 'DELETED' else s.state end as status,
    1 as tokens,
    (s.due_at is not null)::int as waiting,
    (s.refusal is not null)::int as refused,
    (s.retired_at is null and s.state in ('INACTIVE', 'ACTIVE', 'SUSPENDED')
      and coalesce(s.checked_at, s.created_at) < now() - interval '48 hours')::int as unchecked,
    0 as deletions
  from live
  left join tokenmill.scheme_token as s on s.token_id = live.token_id and s.current
  union all
  select
    s.token_scope,
    s.provider,
    'DELETION_OPEN',
    0,
    0,
    0,
    0,
    1
  from tokenmill.scheme_token as s
  join mine on mine.token_scope = s.token_scope
  where not s.third_party and s.retired_at is not null and s.state not in ('DELETED', 'VOID')
)`

const SUMS = ['tokens', 'waiting', 'refused', 'unchecked']
  .map(name => `coalesce(sum(${name}), 0)::text as "${name}"`)
  .concat('coalesce(sum(deletions), 0)::text as "openDeletions"')
  .join(', ')

export const SCHEME_TOKEN: RowsQuery = {
  values: [],
  lines: `${STANDING} select scope::text as "tokenScope", provider as "provider", status as "schemeStatus", ${SUMS}
from standing group by scope, provider, status order by scope, provider collate "C", status collate "C"`,
  groups: `${STANDING} select scope::text as "tokenScope", count(distinct (provider, status))::text as "lines", ${SUMS}
from standing group by scope order by scope`,
  totals: `${STANDING} select count(distinct (scope, provider, status))::text as "lines",
  ${SUMS.replace('coalesce(sum(tokens), 0)', '(select count(*) from live)')}
from standing having count(*) > 0`,
}
