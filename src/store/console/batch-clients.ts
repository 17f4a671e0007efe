// The clients that the list of batches offers as a filter. It only reads.
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface SeenClient {
  clientId: string
  name: string | null
}

/**
 * Up to `limit` clients that have a batch which the person may see, in the order of their ids. It goes from client to client by
 * an index, so that it doesn't read their batches.
 */
export async function listOfBatches(sight: Sight, db: Db, limit: number): Promise<SeenClient[]> {
  const step = (own: string, above: string) =>
    `(select b.client_id from tokenmill.batch as b where ${own} and b.client_id > ${above} order by b.client_id limit 1)`
  const isAll = sight.sees === 'all'
  const own = isAll ? '$1::uuid[] is null' : 'b.entity_id = own.id'
  const owners = isAll ? 'select null::uuid as id' : 'select distinct unnest($1::uuid[]) as id'
  const { rows } = await db.query<SeenClient>({
    text: `with recursive found as (
  select own.id, ${step(own, "''")} as client_id, 1 as place
  from (${owners}) as own
  union all
  select own.id, ${step(own, 'own.client_id')}, own.place + 1
  from found as own
  where own.client_id is not null and own.place < $2
)
select f.client_id as "clientId", c.name
from (select distinct client_id from found where client_id is not null) as f
left join tokenmill.client as c on c.client_id = f.client_id
order by f.client_id
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}
