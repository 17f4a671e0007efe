// The list of clients, and one of them with its keys, for people who see the whole installation. Two orders, each with its index. It
// only reads.
import type { ClientKey } from '../../access/clients.ts'
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

export const CLIENT_ORDERS = ['newest', 'name'] as const
export type ClientOrder = (typeof CLIENT_ORDERS)[number]

export interface ShownClient {
  clientId: string
  name: string
  entities: string[]
  roles: string[]
  alg: string | null
  /** The rule for its names: `checked` or `numeric`. */
  names: string
  isSystem: boolean
  /** ms since the epoch, as are all times here. */
  createdAt: number
  revokedAt: number | null
  /** Keys that aren't revoked and whose end hasn't come. */
  liveKeys: number
  /** When the last of these ends; null: one of them has no end, or there is none. */
  keysEndAt: number | null
  /** The last activity of its newest batch; null: it never sent one. */
  lastBatchAt: number | null
}

const ALL = '$1::uuid[] is null'
const LIVE_KEY = `k.state <> 'REVOKED' and (k.valid_until is null or k.valid_until > now())`
const COLUMNS = `c.client_id as "clientId", c.name, c.entities, c.roles, c.alg, c.names, c.system as "isSystem",
c.created_at as "createdAt", c.revoked_at as "revokedAt", keys.n as "liveKeys", keys.end_at as "keysEndAt",
(select b.active_at from tokenmill.batch as b where b.client_id = c.client_id order by b.batch_no desc limit 1) as "lastBatchAt"`
const KEYS = `cross join lateral (select count(*) as n, case when bool_or(k.valid_until is null) then null else max(k.valid_until) end as end_at
  from tokenmill.client_key as k where k.client_id = c.client_id and ${LIVE_KEY}) as keys`

const ORDERED: Record<ClientOrder, { behind: string; by: string }> = {
  newest: {
    behind:
      '(c.created_at, c.client_id) < (select p.created_at, p.client_id from tokenmill.client as p where p.client_id = $2)',
    by: 'c.created_at desc, c.client_id desc',
  },
  name: {
    behind: '(c.name, c.client_id) > (select p.name, p.client_id from tokenmill.client as p where p.client_id = $2)',
    by: 'c.name, c.client_id',
  },
}

/** A page of clients. `after`: the last client of the page before. */
export async function list(
  sight: Sight,
  db: Db,
  { order, after, limit }: { order: ClientOrder; after: string | undefined; limit: number },
): Promise<ShownClient[]> {
  const { behind, by } = ORDERED[order]
  const { rows } = await db.query<ShownClient>({
    text: `select ${COLUMNS}
from (
  select
    client_id,
    name,
    entities,
    roles,
    alg,
    names,
    system,
    created_at,
    revoked_at
  from tokenmill.client as c
  where ${ALL} and ${after === undefined ? '$2::text is null' : behind}
order by ${by}
  limit $3
) as c ${KEYS}
order by ${by}`,
    values: [entitiesOf(sight), after ?? null, limit],
  })
  return rows
}

/** Undefined for people who see some entities, as for a client that isn't there. */
export async function find(sight: Sight, db: Db, clientId: string): Promise<ShownClient | undefined> {
  const { rows } = await db.query<ShownClient>({
    text: `select ${COLUMNS}
from tokenmill.client as c ${KEYS}
where ${ALL} and c.client_id = $2`,
    values: [entitiesOf(sight), clientId],
  })
  return rows[0]
}

export type ShownClientKey = Pick<ClientKey, 'kid' | 'alg' | 'state' | 'validUntil' | 'createdAt'>

/** The keys that a client has or had, newest first. */
export async function listKeys(
  sight: Sight,
  db: Db,
  { clientId, limit }: { clientId: string; limit: number },
): Promise<ShownClientKey[]> {
  const { rows } = await db.query<ShownClientKey>({
    text: `select
  kid,
  alg,
  state,
  valid_until as "validUntil",
  created_at as "createdAt"
from tokenmill.client_key
where ${ALL} and client_id = $2
order by created_at desc, kid
limit $3`,
    values: [entitiesOf(sight), clientId, limit],
  })
  return rows
}
