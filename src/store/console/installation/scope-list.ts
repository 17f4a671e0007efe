// The list of token scopes, for people who see the whole installation. Two orders, each with its index. It only reads.
import type { Scope } from '../../access/scopes.ts'
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

export const SCOPE_ORDERS = ['newest', 'entity'] as const
export type ScopeOrder = (typeof SCOPE_ORDERS)[number]
export type ShownScope = Omit<Scope, 'mac' | 'macVersion'>

const COLUMNS = `s.token_scope as "tokenScope", s.entity_id as "entityId", s.par, s.network_tokens as "networkTokens", s.requestor,
s.auto_provision as "autoProvision", s.bin_digits as "binDigits", s.keep_billing as "keepBilling", s.created_at as "createdAt"`

const ORDERED: Record<ScopeOrder, { behind: string; by: string }> = {
  newest: {
    behind:
      '(s.created_at, s.token_scope) < (select p.created_at, p.token_scope from tokenmill.scope as p where p.token_scope = $2)',
    by: 's.created_at desc, s.token_scope desc',
  },
  entity: {
    behind:
      '(s.entity_id, s.token_scope) > (select p.entity_id, p.token_scope from tokenmill.scope as p where p.token_scope = $2)',
    by: 's.entity_id, s.token_scope',
  },
}

/** A page of scopes. `after`: the last scope of the page before. */
export async function list(
  sight: Sight,
  db: Db,
  { order, after, limit }: { order: ScopeOrder; after: string | undefined; limit: number },
): Promise<ShownScope[]> {
  const { behind, by } = ORDERED[order]
  const { rows } = await db.query<ShownScope>({
    text: `select ${COLUMNS}
from tokenmill.scope as s
where $1::uuid[] is null and ${after === undefined ? '$2::uuid is null' : behind}
order by ${by}
limit $3`,
    values: [entitiesOf(sight), after ?? null, limit],
  })
  return rows
}
