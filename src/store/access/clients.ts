// Clients and their signing keys: who may send jobs, for which entities, and with which signature. Envelopes are
// verified elsewhere. `state` and `validUntil` of a key, and `revokedAt` of its client, say whether it is live.
import type { Role } from '../../job/catalogue.ts'
import type { NameRule } from '../../job/envelope/names.ts'
import type { Algorithm } from '../../job/envelope/signature.ts'
import type { Db } from '../pool.ts'

export interface Client {
  clientId: string
  name: string
  userId: string
  /** The first is the client's own entity; the client may also act and search for the others. */
  entities: string[]
  roles: Role[]
  /** The signature algorithm of all its keys; the first key sets it. */
  alg: Algorithm | null
  system: boolean
  /** The rule for names that the client chooses, such as its jti. */
  names: NameRule
  /** ms since the epoch. */
  createdAt: number
  revokedAt: number | null
  /** The code of the row by which workers know that tokenmill wrote it; null if there is none. */
  mac: Buffer | null
  /** The version of the data key `grant`. */
  macVersion: number | null
}

export interface ClientKey {
  clientId: string
  kid: string
  alg: Algorithm
  publicJwk: Record<string, unknown>
  /** STOLEN: only of a system client; of what it signed before `validUntil` its reversals count (workers/reversal.ts). */
  state: 'ACTIVE' | 'RETIRED' | 'REVOKED' | 'STOLEN'
  /** Until when a retired key still verifies signatures, ms since the epoch. */
  validUntil: number | null
  createdAt: number
  /** When a worker verified an envelope that it signed, for the first time; only of system clients. */
  verifiedAt: number | null
  mac: Buffer | null
  macVersion: number | null
}

/** The most keys of one client that may be active at once. */
export const ACTIVE_KEYS_MAX = 2

export const COLUMNS = `
  client_id as "clientId",
  name,
  user_id as "userId",
  entities,
  roles,
  alg,
  system,
  names,
  created_at as "createdAt",
  revoked_at as "revokedAt",
  mac,
  mac_version as "macVersion"`

export const KEY_COLUMNS = `
  client_id as "clientId",
  kid,
  alg,
  public_jwk as "publicJwk",
  state,
  valid_until as "validUntil",
  created_at as "createdAt",
  verified_at as "verifiedAt",
  mac,
  mac_version as "macVersion"`

/** A client by its id; also a revoked one. */
export async function find(db: Db, clientId: string): Promise<Client | undefined> {
  const { rows } = await db.query<Client>({
    name: 'client-find',
    text: `select ${COLUMNS}
from tokenmill.client
where client_id = $1`,
    values: [clientId],
  })
  return rows[0]
}

/** A client by its id. Locks its row until the transaction ends, so that another change of its keys waits. */
export async function hold(db: Db, clientId: string): Promise<Client | undefined> {
  const { rows } = await db.query<Client>({
    text: `select ${COLUMNS}
from tokenmill.client
where client_id = $1
for update`,
    values: [clientId],
  })
  return rows[0]
}

/** Clients whose id or name is `word`, oldest first. */
export async function findByIdOrName(db: Db, word: string): Promise<Client[]> {
  const { rows } = await db.query<Client>({
    text: `select ${COLUMNS}
from tokenmill.client
where client_id = $1 or name = $1
order by created_at, client_id`,
    values: [word],
  })
  return rows
}

export async function list(db: Db): Promise<Client[]> {
  const { rows } = await db.query<Client>({
    text: `select ${COLUMNS}
from tokenmill.client
order by created_at, client_id`,
  })
  return rows
}

type NewClient = Omit<Client, 'createdAt' | 'revokedAt' | 'names' | 'mac' | 'macVersion'> & {
  /** Default: `checked`. */
  names?: NameRule
  apiKeyHash: ApiKeyHash | null
}

/** The hash of a client's API key, and the version of the data key `api-key` that made it. */
export interface ApiKeyHash {
  hash: Buffer
  keyVersion: number
}

/** Inserts a client. False if a client with this id exists, which stays as it is. */
export async function insert(db: Db, client: NewClient): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.client (
  client_id,
  name,
  user_id,
  api_key_hash,
  entities,
  roles,
  alg,
  system,
  names,
  api_key_version
)
values (
  $1,
  $2,
  $3,
  $4,
  $5::uuid[],
  $6::text[],
  $7,
  $8,
  $9,
  coalesce($10::smallint, 1)
)
on conflict (client_id) do nothing`,
    values: [
      client.clientId,
      client.name,
      client.userId,
      client.apiKeyHash?.hash ?? null,
      client.entities,
      client.roles,
      client.alg,
      client.system,
      client.names ?? 'checked',
      client.apiKeyHash?.keyVersion ?? null,
    ],
  })
  return count === 1
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  clientId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client
set mac = $2, mac_version = $3
where client_id = $1 and ($4::bytea is null or mac = $4)`,
    values: [clientId, mac, macVersion, former ?? null],
  })
  return count === 1
}

/** Revokes a client, and removes its code. False if it was revoked before or doesn't exist. */
export async function revoke(db: Db, clientId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client
set revoked_at = now(), mac = null, mac_version = null
where client_id = $1 and revoked_at is null`,
    values: [clientId],
  })
  return count === 1
}

/** Sets the rule for a client's names. False if the client is revoked or doesn't exist. */
export async function setNames(db: Db, clientId: string, names: NameRule): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client
set names = $2
where client_id = $1 and revoked_at is null`,
    values: [clientId, names],
  })
  return count === 1
}

export async function setApiKeyHash(db: Db, clientId: string, { hash, keyVersion }: ApiKeyHash): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client
set api_key_hash = $2, api_key_version = $3
where client_id = $1 and revoked_at is null`,
    values: [clientId, hash, keyVersion],
  })
  return count === 1
}

/** All keys that a client ever had, so that the caller can tell a revoked key from an unknown one. */
export async function findClientKeys(db: Db, clientId: string): Promise<ClientKey[]> {
  const { rows } = await db.query<ClientKey>({
    name: 'client-keys',
    text: `select ${KEY_COLUMNS}
from tokenmill.client_key
where client_id = $1
order by created_at, kid`,
    values: [clientId],
  })
  return rows
}

/** All keys of all clients. */
export async function listKeys(db: Db): Promise<ClientKey[]> {
  const { rows } = await db.query<ClientKey>({
    text: `select ${KEY_COLUMNS}
from tokenmill.client_key
order by client_id, created_at, kid`,
  })
  return rows
}

/** Sets the code of a key's row as it is now; `former` as for `setMac`. */
export async function setKeyMac(
  db: Db,
  { clientId, kid }: Pick<ClientKey, 'clientId' | 'kid'>,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client_key
set mac = $3, mac_version = $4
where client_id = $1 and kid = $2 and ($5::bytea is null or mac = $5)`,
    values: [clientId, kid, mac, macVersion, former ?? null],
  })
  return count === 1
}

/** Inserts a key. False if this client has or had a key with this `kid`: a revoked key never comes back. */
export async function insertKey(
  db: Db,
  key: Pick<ClientKey, 'clientId' | 'kid' | 'alg' | 'publicJwk'>,
): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.client_key (
  client_id,
  kid,
  alg,
  public_jwk
)
values (
  $1,
  $2,
  $3,
  $4::jsonb
)
on conflict (client_id, kid) do nothing`,
    values: [key.clientId, key.kid, key.alg, JSON.stringify(key.publicJwk)],
  })
  return count === 1
}

/** Notes that a worker has verified an envelope that this key signed. */
export async function noteVerified(db: Db, clientId: string, kid: string): Promise<void> {
  await db.query({
    text: `update tokenmill.client_key
set verified_at = now()
where client_id = $1 and kid = $2 and verified_at is null`,
    values: [clientId, kid],
  })
}

/**
 * Retires a key: it still verifies signatures until `validUntil` (ms since the epoch). False if it doesn't exist or is
 * revoked.
 */
export function retireKey(db: Db, clientId: string, kid: string, validUntil: number): Promise<boolean> {
  return endKey(db, { clientId, kid }, 'RETIRED', validUntil)
}

/** Ends a key that was stolen at this time (ms since the epoch). False if it doesn't exist or is revoked. */
export function markStolen(db: Db, clientId: string, kid: string, at: number): Promise<boolean> {
  return endKey(db, { clientId, kid }, 'STOLEN', at)
}

async function endKey(
  db: Db,
  { clientId, kid }: Pick<ClientKey, 'clientId' | 'kid'>,
  state: 'RETIRED' | 'STOLEN',
  at: number,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client_key
set state = $3, valid_until = $4
where client_id = $1 and kid = $2 and state <> 'REVOKED'`,
    values: [clientId, kid, state, new Date(at)],
  })
  return count === 1
}

/** Revokes a key, and removes its code: it verifies no signature any more. False if it doesn't exist. */
export async function revokeKey(db: Db, clientId: string, kid: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client_key
set state = 'REVOKED', mac = null, mac_version = null
where client_id = $1 and kid = $2`,
    values: [clientId, kid],
  })
  return count === 1
}
