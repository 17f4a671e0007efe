// Clients beside their failed jobs, for pages and commands. People for some entities see the clients that act for no other
// entity; tokenmill's own clients act for everybody, so only people for all entities see these. It only reads.
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface SeenClient {
  clientId: string
  name: string
  isRevoked: boolean
}

const COLUMNS = 'c.client_id as "clientId", c.name, c.revoked_at is not null as "isRevoked"'
const SEEN = '($1::uuid[] is null or (not c.system and cardinality(c.entities) > 0 and c.entities <@ $1::uuid[]))'

/** Undefined for a client of others, as for one that isn't there. */
export async function find(sight: Sight, db: Db, clientId: string): Promise<SeenClient | undefined> {
  const { rows } = await db.query<SeenClient>({
    text: `select ${COLUMNS}
from tokenmill.client as c
where ${SEEN} and c.client_id = $2`,
    values: [entitiesOf(sight), clientId],
  })
  return rows[0]
}

/** For the choice of a filter, in the order of their ids. */
export async function list(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenClient[]> {
  const { rows } = await db.query<SeenClient>({
    text: `select ${COLUMNS}
from tokenmill.client as c
where ${SEEN}
order by c.client_id
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}
