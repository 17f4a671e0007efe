// Clients as users of HTTP Basic, and clients whose last signing key ends, or whose API key was hashed by a former key.
// It only reads; clients.ts writes.
import type { Db } from '../pool.ts'
import { type ApiKeyHash, type Client, COLUMNS } from './clients.ts'

/** The client of a user name of HTTP Basic, with the hash of its API key. The reader role may not select it. */
export async function findByUser(
  db: Db,
  userId: string,
): Promise<{ client: Client; apiKeyHash: ApiKeyHash | null } | undefined> {
  const { rows } = await db.query<Client & { hash: Buffer | null; keyVersion: number }>({
    name: 'client-by-user',
    text: `select ${COLUMNS},
  api_key_hash as hash,
  api_key_version as "keyVersion"
from tokenmill.client
where user_id = $1`,
    values: [userId],
  })
  if (!rows[0]) return undefined
  const { hash, keyVersion, ...client } = rows[0]
  return { client, apiKeyHash: hash && { hash, keyVersion } }
}

/** A client whose API key is hashed under a former version of the data key `api-key`. */
export interface OldApiKey {
  clientId: string
  name: string
  keyVersion: number
}

/** The clients that aren't revoked and whose API keys are hashed under a former key, by name. */
export async function listOldApiKeys(db: Db): Promise<OldApiKey[]> {
  const { rows } = await db.query<OldApiKey>({
    text: `select client_id as "clientId", name, api_key_version as "keyVersion"
from tokenmill.client
where api_key_hash is not null and revoked_at is null and api_key_version <>
  (select version from tokenmill.data_key where purpose = 'api-key' and state = 'ACTIVE')
order by name, client_id`,
  })
  return rows
}

/**
 * Names of clients that aren't revoked and whose last valid key expires by `before` (ms since the epoch), with the time
 * at which it expires.
 */
export async function listWithoutKeyAfter(db: Db, before: number): Promise<{ name: string; endsAt: number }[]> {
  const { rows } = await db.query<{ name: string; endsAt: number }>({
    text: `select c.name, max(k.valid_until) as "endsAt"
from tokenmill.client as c
join tokenmill.client_key as k on k.client_id = c.client_id and k.state <> 'REVOKED'
where c.revoked_at is null
group by c.client_id, c.name
having bool_and(k.state = 'RETIRED') and max(k.valid_until) between now() and $1
order by "endsAt", c.name`,
    values: [new Date(before)],
  })
  return rows
}
