// Which keys of clients are live, for the list that senders read. A worker decides by the key's row whether it accepts
// a key.
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import { type Client, type ClientKey, COLUMNS, KEY_COLUMNS } from './clients.ts'

/** Selects live keys of clients that aren't revoked. It is the same rule as that of the workers (workers/directory.ts), by the database's clock. */
const LIVE = `(state = 'ACTIVE' or (state = 'RETIRED' and valid_until > now()))`

/** Clients that aren't revoked, by id and after `after`. */
export async function listLiveClients(db: Db, { after, limit }: { after: string; limit: number }): Promise<Client[]> {
  const { rows } = await db.query<Client>({
    name: 'live-clients',
    text: `select ${COLUMNS}
from tokenmill.client
where revoked_at is null and client_id > $1
order by client_id
limit $2`,
    values: [after, limit],
  })
  return rows
}

/** The live keys of these clients, which aren't revoked. */
export async function listLiveKeys(db: Db, clientIds: readonly string[]): Promise<ClientKey[]> {
  const { rows } = await db.query<ClientKey>({
    name: 'live-keys',
    text: `select ${KEY_COLUMNS}
from tokenmill.client_key
where client_id = any($1::text[]) and ${LIVE}
order by client_id, kid`,
    values: [texts(clientIds)],
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
where k.client_id = $1 and k.kid = $2 and c.revoked_at is null and ${LIVE}`,
    values: [clientId, kid],
  })
  return rows.length > 0
}
