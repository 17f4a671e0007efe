// What the filter of the page Audit offers: who acted, and which acts there are. For all of the audit it goes from name to name by an
// index; of some entities' rows it looks at the newest. It only reads.
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../../sight.ts'
import { knows, nameOf } from './rows.ts'

/** How many of the newest rows of each of their entities are looked at for people for some entities. */
const LOOKED = 1_000

/** The distinct values of a column, in the order of its index. $1 entities, $2 limit. */
function distinct(sight: Sight, column: 'actor' | 'action'): string {
  if (sight.sees === 'entities')
    return `(select distinct l.${column} as name from (
  select a.${column} from (select distinct unnest($1::uuid[]) as id) as own cross join lateral (
    select a.${column}, a.at from tokenmill.audit as a where a.entity_id = own.id order by a.at desc, a.audit_id desc limit ${LOOKED}
  ) as a order by a.at desc limit ${LOOKED}) as l order by 1 limit $2)`
  const next = (above: string) =>
    `(select a.${column} from tokenmill.audit as a where $1::uuid[] is null and a.${column} > ${above} order by a.${column} limit 1)`
  return `(with recursive found as (
  select ${next("''")} as name, 1 as place
  union all
  select ${next('found.name')}, found.place + 1 from found where found.name is not null and found.place < $2
) select name from found where name is not null)`
}

export interface ActorChoice {
  actor: string
  /** Of a person or a client; null: it is neither, or is gone. */
  name: string | null
}

/** Up to `limit` of those who acted and whom the person may know. */
export async function listActors(sight: Sight, db: Db, limit: number): Promise<ActorChoice[]> {
  const { rows } = await db.query<ActorChoice>({
    text: `select l.actor, ${nameOf('l')} as name
from (select name as actor from ${distinct(sight, 'actor')} as d) as l
where ${knows('l')}
order by l.actor`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}

/** Up to `limit` names of acts that the person may see a row of. */
export async function listActions(sight: Sight, db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>({
    text: `select name
from ${distinct(sight, 'action')} as d
order by 1`,
    values: [entitiesOf(sight), limit],
  })
  return rows.map(({ name }) => name)
}
