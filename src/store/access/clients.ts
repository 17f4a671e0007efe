// Clients and their signing keys: who may send jobs, for which entities, and with which signature. Envelopes are
// verified elsewhere; `state` and `validUntil` of a key say whether it is live.
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
}

export interface ClientKey {
  clientId: string
  kid: string
  alg: Algorithm
  publicJwk: Record<string, unknown>
  state: 'ACTIVE' | 'RETIRED' | 'REVOKED'
  /** Until when a retired key still verifies signatures, ms since the epoch. */
  validUntil: number | null
  createdAt: number
}

/** The most keys of one client that may be active at once. */
export const ACTIVE_KEYS_MAX = 2

interface Row {
  client_id: string
  name: string
  user_id: string
  entities: string[]
  roles: Role[]
  alg: Algorithm | null
  system: boolean
  names: NameRule
  created_at: number
  revoked_at: number | null
}

const COLUMNS = 'client_id, name, user_id, entities, roles, alg, system, names, created_at, revoked_at'

function clientOf(row: Row): Client {
  return {
    clientId: row.client_id,
    name: row.name,
    userId: row.user_id,
    entities: row.entities,
    roles: row.roles,
    alg: row.alg,
    system: row.system,
    names: row.names,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  }
}

interface KeyRow {
  client_id: string
  kid: string
  alg: Algorithm
  public_jwk: Record<string, unknown>
  state: ClientKey['state']
  valid_until: number | null
  created_at: number
}

const KEY_COLUMNS = 'client_id, kid, alg, public_jwk, state, valid_until, created_at'

function keyOf(row: KeyRow): ClientKey {
  return {
    clientId: row.client_id,
    kid: row.kid,
    alg: row.alg,
    publicJwk: row.public_jwk,
    state: row.state,
    validUntil: row.valid_until,
    createdAt: row.created_at,
  }
}

/** A client by its id; also a revoked one. */
export async function find(db: Db, clientId: string): Promise<Client | undefined> {
  const { rows } = await db.query<Row>({
    name: 'client-find',
    text: `select ${COLUMNS} from tokenmill.client where client_id = $1`,
    values: [clientId],
  })
  const row = rows[0]
  return row && clientOf(row)
}

/** A client by its id. Locks its row until the transaction ends, so that another change of its keys waits. */
export async function hold(db: Db, clientId: string): Promise<Client | undefined> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.client where client_id = $1 for update`,
    values: [clientId],
  })
  const row = rows[0]
  return row && clientOf(row)
}

/** Clients whose id or name is `word`, oldest first. */
export async function findByIdOrName(db: Db, word: string): Promise<Client[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.client where client_id = $1 or name = $1 order by created_at, client_id`,
    values: [word],
  })
  return rows.map(clientOf)
}

/** The client of a user name of HTTP Basic, with the hash of its API key. The reader role may not select it. */
export async function findByUser(
  db: Db,
  userId: string,
): Promise<{ client: Client; apiKeyHash: Buffer | null } | undefined> {
  const { rows } = await db.query<Row & { api_key_hash: Buffer | null }>({
    name: 'client-by-user',
    text: `select ${COLUMNS}, api_key_hash from tokenmill.client where user_id = $1`,
    values: [userId],
  })
  const row = rows[0]
  return row && { client: clientOf(row), apiKeyHash: row.api_key_hash }
}

export async function list(db: Db): Promise<Client[]> {
  const { rows } = await db.query<Row>({
    text: `select ${COLUMNS} from tokenmill.client order by created_at, client_id`,
  })
  return rows.map(clientOf)
}

type NewClient = Omit<Client, 'createdAt' | 'revokedAt' | 'names'> & {
  /** Default: `checked`. */
  names?: NameRule
  apiKeyHash: Buffer | null
}

/** Inserts a client. False if a client with this id exists, which stays as it is. */
export async function insert(db: Db, client: NewClient): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.client (client_id, name, user_id, api_key_hash, entities, roles, alg, system, names)
values ($1, $2, $3, $4, $5::uuid[], $6::text[], $7, $8, $9) on conflict (client_id) do nothing`,
    values: [
      client.clientId,
      client.name,
      client.userId,
      client.apiKeyHash,
      client.entities,
      client.roles,
      client.alg,
      client.system,
      client.names ?? 'checked',
    ],
  })
  return count === 1
}

/** Revokes a client. False if it was revoked before or doesn't exist. */
export async function revoke(db: Db, clientId: string): Promise<boolean> {
  const { count } = await db.query({
    text: 'update tokenmill.client set revoked_at = now() where client_id = $1 and revoked_at is null',
    values: [clientId],
  })
  return count === 1
}

/** Sets the rule for a client's names. False if the client is revoked or doesn't exist. */
export async function setNames(db: Db, clientId: string, names: NameRule): Promise<boolean> {
  const { count } = await db.query({
    text: 'update tokenmill.client set names = $2 where client_id = $1 and revoked_at is null',
    values: [clientId, names],
  })
  return count === 1
}

export async function setApiKeyHash(db: Db, clientId: string, apiKeyHash: Buffer): Promise<boolean> {
  const { count } = await db.query({
    text: 'update tokenmill.client set api_key_hash = $2 where client_id = $1 and revoked_at is null',
    values: [clientId, apiKeyHash],
  })
  return count === 1
}

/**
 * Names of clients that aren't revoked and whose last valid key expires by `before` (ms since the epoch), with the time
 * at which it expires.
 */
export async function listWithoutKeyAfter(db: Db, before: number): Promise<{ name: string; endsAt: number }[]> {
  const { rows } = await db.query<{ name: string; ends_at: number }>({
    text: `select c.name, max(k.valid_until) as ends_at
from tokenmill.client as c join tokenmill.client_key as k on k.client_id = c.client_id and k.state <> 'REVOKED'
where c.revoked_at is null group by c.client_id, c.name
having bool_and(k.state = 'RETIRED') and max(k.valid_until) between now() and $1 order by ends_at, c.name`,
    values: [new Date(before)],
  })
  return rows.map(row => ({ name: row.name, endsAt: row.ends_at }))
}

/** All keys that a client ever had, so that the caller can tell a revoked key from an unknown one. */
export async function findClientKeys(db: Db, clientId: string): Promise<ClientKey[]> {
  const { rows } = await db.query<KeyRow>({
    name: 'client-keys',
    text: `select ${KEY_COLUMNS} from tokenmill.client_key where client_id = $1 order by created_at, kid`,
    values: [clientId],
  })
  return rows.map(keyOf)
}

/** Inserts a key. False if this client has or had a key with this `kid`: a revoked key never comes back. */
export async function insertKey(
  db: Db,
  key: Pick<ClientKey, 'clientId' | 'kid' | 'alg' | 'publicJwk'>,
): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.client_key (client_id, kid, alg, public_jwk) values ($1, $2, $3, $4::jsonb)
on conflict (client_id, kid) do nothing`,
    values: [key.clientId, key.kid, key.alg, JSON.stringify(key.publicJwk)],
  })
  return count === 1
}

/**
 * Retires a key: it still verifies signatures until `validUntil` (ms since the epoch). False if it doesn't exist or is
 * revoked.
 */
export async function retireKey(db: Db, clientId: string, kid: string, validUntil: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client_key set state = 'RETIRED', valid_until = $3
where client_id = $1 and kid = $2 and state <> 'REVOKED'`,
    values: [clientId, kid, new Date(validUntil)],
  })
  return count === 1
}

/** Revokes a key: it verifies no signature any more. False if it doesn't exist. */
export async function revokeKey(db: Db, clientId: string, kid: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.client_key set state = 'REVOKED' where client_id = $1 and kid = $2`,
    values: [clientId, kid],
  })
  return count === 1
}

/** Selects live keys. It is the same rule as that of the workers (workers/directory.ts), by the database's clock. */
const LIVE = `c.revoked_at is null and (k.state = 'ACTIVE' or (k.state = 'RETIRED' and k.valid_until > now()))`

/** The live keys, `limit` at most. */
export async function listLiveKeys(db: Db, limit: number): Promise<Pick<ClientKey, 'clientId' | 'kid'>[]> {
  const { rows } = await db.query<{ client_id: string; kid: string }>({
    name: 'live-keys',
    text: `select k.client_id, k.kid from tokenmill.client_key k join tokenmill.client c using (client_id)
where ${LIVE} order by k.client_id, k.kid limit $1`,
    values: [limit],
  })
  return rows.map(row => ({ clientId: row.client_id, kid: row.kid }))
}

/** Whether this key is live. */
export async function isLive(db: Db, { clientId, kid }: Pick<ClientKey, 'clientId' | 'kid'>): Promise<boolean> {
  const { rows } = await db.query({
    name: 'key-is-live',
    text: `select 1 from tokenmill.client_key k join tokenmill.client c using (client_id)
where k.client_id = $1 and k.kid = $2 and ${LIVE}`,
    values: [clientId, kid],
  })
  return rows.length > 0
}
