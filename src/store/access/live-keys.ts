// Which keys of clients are live, for the list that senders read. A worker decides by the key's row whether it accepts
// a key.
import type { Db } from '../pool.ts'
import type { ClientKey } from './clients.ts'

/** Selects live keys. It is the same rule as that of the workers (workers/directory.ts), by the database's clock. */
const LIVE = `c.revoked_at is null and (k.state = 'ACTIVE' or (k.state = 'RETIRED' and k.valid_until > now()))`

/** The live keys, `limit` at most. */
export async function listLiveKeys(db: Db, limit: number): Promise<Pick<ClientKey, 'clientId' | 'kid'>[]> {
  const { rows } = await db.query<Pick<ClientKey, 'clientId' | 'kid'>>({
    name: 'live-keys',
    text: `select k.client_id as "clientId", k.kid
from tokenmill.client_key k
join tokenmill.client c using (client_id)
where ${LIVE}
order by k.client_id, k.kid
limit $1`,
    values: [limit],
  })
  return rows
}

/** Whether this key is live. */
export async function isLive(db: Db, { clientId, kid }: Pick<ClientKey, 'clientId' | 'kid'>): Promise<boolean> {
  const { rows } = await db.query({
    name: 'key-is-live',
    text: `select 1
from tokenmill.client_key k
join tokenmill.client c using (client_id)
where k.client_id = $1 and k.kid = $2 and ${LIVE}`,
    values: [clientId, kid],
  })
  return rows.length > 0
}
