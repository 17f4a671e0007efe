// Endpoints: which client is subscribed to which events, at its results queue or at a URL; a URL's sealed secrets, and
// how many requests it gets at once. deliveries.ts holds what is sent.
import type { Role } from '../../job/catalogue.ts'
import type { EventType } from '../../job/event.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

/** The most requests to one endpoint at the same time; fewer while the endpoint is slow. */
export const AT_ONCE_MAX = 4

export interface Endpoint {
  endpointId: string
  clientId: string
  /** `null`: the client's results queue. */
  url: string | null
  events: EventType[]
  /** Until when the former secret also signs. All times in this file are ms since the epoch. */
  formerUntil: number | null
  slowUntil: number | null
  atOnce: number
  disabledAt: number | null
  createdAt: number
  /** The code of client, URL and events (src/vault/ring/grants.ts); null: none. */
  mac: Buffer | null
  macVersion: number | null
}

export interface SealedSecret {
  sealed: Buffer
  keyVersion: number
}

const COLUMNS = `
  endpoint_id as "endpointId",
  client_id as "clientId",
  url,
  events,
  former_until as "formerUntil",
  slow_until as "slowUntil",
  at_once as "atOnce",
  disabled_at as "disabledAt",
  created_at as "createdAt",
  mac,
  mac_version as "macVersion"`

export type NewEndpoint = Pick<Endpoint, 'endpointId' | 'clientId' | 'url' | 'events'> & {
  /** The secret of a URL; null for a results queue. */
  secret: SealedSecret | null
}

/** Inserts an endpoint. False if the client's results queue is subscribed already. */
export async function insert(db: Db, endpoint: NewEndpoint): Promise<boolean> {
  const { endpointId, clientId, url, events, secret } = endpoint
  const { count } = await db.query({
    text: `insert into tokenmill.endpoint (
  endpoint_id,
  client_id,
  url,
  events,
  sealed,
  seal_version
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6
)
on conflict (client_id)
where url is null and removed_at is null do nothing`,
    values: [endpointId, clientId, url, events, secret?.sealed, secret?.keyVersion],
  })
  return count === 1
}

/** Endpoints, oldest first, of one client or of all. Removed endpoints are left out. */
export async function list(db: Db, clientId: string | null = null): Promise<Endpoint[]> {
  const { rows } = await db.query<Endpoint>({
    text: `select ${COLUMNS}
from tokenmill.endpoint
where removed_at is null and ($1::text is null or client_id = $1)
order by created_at, endpoint_id`,
    values: [clientId],
  })
  return rows
}

export interface TroubledEndpoint {
  endpointId: string
  clientId: string
  state: 'disabled' | 'failing'
}

/**
 * Endpoints that need attention: disabled ones, those with a delivery that failed for good since `failedSince` (ms),
 * and those with an open delivery that has failed `failuresMin` times. The step of the schedule doesn't count here,
 * because an operator may start it again.
 */
export async function listTroubled(
  db: Db,
  { failedSince, failuresMin }: { failedSince: number; failuresMin: number },
): Promise<TroubledEndpoint[]> {
  const { rows } = await db.query<TroubledEndpoint>({
    text: `select e.endpoint_id as "endpointId", e.client_id as "clientId",
  case when e.disabled_at is null then 'failing' else 'disabled' end as state
from tokenmill.endpoint as e
join tokenmill.client as c using (client_id)
where e.removed_at is null and c.revoked_at is null and (e.disabled_at is not null
  or exists (select from tokenmill.delivery as d where d.endpoint_id = e.endpoint_id and d.state = 'FAILED' and d.ended_at >= $1)
  or exists (select from tokenmill.delivery as d where d.endpoint_id = e.endpoint_id and d.state = 'WAITING' and d.failures >= $2)
  or exists (select from tokenmill.delivery as d where d.endpoint_id = e.endpoint_id and d.state = 'SENDING' and d.failures >= $2))
order by e.created_at, e.endpoint_id`,
    values: [new Date(failedSince), failuresMin],
  })
  return rows
}

/**
 * When an endpoint counts as troubled: after 4 failures of a delivery, which take about half an hour, or if a delivery
 * failed for good within a day.
 */
export const TROUBLE = { failuresMin: 4, failedMs: 24 * 3_600_000 } as const

export type Subscribed = Pick<Endpoint, 'endpointId' | 'clientId' | 'url'>
const SUBSCRIBED = 'e.endpoint_id as "endpointId", e.client_id as "clientId", e.url'

/** The endpoints that are subscribed to such an event. A revoked client has none. */
export async function findSubscribed(
  db: Db,
  { clientId, type }: { clientId: string; type: EventType },
): Promise<Subscribed[]> {
  const { rows } = await db.query<Subscribed>({
    name: 'endpoint-subscribed',
    text: `select ${SUBSCRIBED}
from tokenmill.endpoint as e
join tokenmill.client as c using (client_id)
where e.client_id = $1 and e.removed_at is null and $2 = any(e.events) and c.revoked_at is null`,
    values: [clientId, type],
  })
  return rows
}

/** The endpoints of all clients with this role that are subscribed to such an event. */
export async function findSubscribedByRole(db: Db, role: Role, type: EventType): Promise<Subscribed[]> {
  const { rows } = await db.query<Subscribed>({
    text: `select ${SUBSCRIBED}
from tokenmill.endpoint as e
join tokenmill.client as c using (client_id)
where $1 = any(c.roles) and e.removed_at is null and $2 = any(e.events) and c.revoked_at is null`,
    values: [role, type],
  })
  return rows
}

/**
 * The endpoints that are subscribed to such an event in these token scopes: those of all clients that act for the
 * scope's entity.
 */
export async function findSubscribedIn(
  db: Db,
  tokenScopes: readonly string[],
  type: EventType,
): Promise<(Subscribed & { tokenScope: string })[]> {
  const { rows } = await db.query<Subscribed & { tokenScope: string }>({
    name: 'endpoint-subscribed-in',
    text: `select s.token_scope as "tokenScope", ${SUBSCRIBED}
from tokenmill.scope as s
join tokenmill.client as c on s.entity_id = any(c.entities)
join tokenmill.endpoint as e using (client_id)
where s.token_scope = any($1::uuid[]) and e.removed_at is null and $2 = any(e.events) and c.revoked_at is null`,
    values: [plains(tokenScopes), type],
  })
  return rows
}

/** The endpoint, locked until the transaction ends; undefined if it was removed or never existed. */
export async function lock(db: Db, endpointId: string): Promise<Endpoint | undefined> {
  const { rows } = await db.query<Endpoint>({
    text: `select ${COLUMNS}
from tokenmill.endpoint
where endpoint_id = $1 and removed_at is null
for no key update`,
    values: [endpointId],
  })
  return rows[0]
}

/** The current secret, then the former secret while it is valid. */
export async function findSecrets(db: Db, endpointId: string): Promise<SealedSecret[]> {
  const { rows } = await db.query<SealedSecret>({
    name: 'endpoint-secrets',
    text: `select sealed, seal_version as "keyVersion"
from tokenmill.endpoint
where endpoint_id = $1 and sealed is not null
union all
select former_sealed, former_version
from tokenmill.endpoint
where endpoint_id = $1 and former_until > now()`,
    values: [endpointId],
  })
  return rows
}

/** Replaces the secret. The former one stays valid for `overlapMs`; 0: it ends now. */
export async function rotate(
  db: Db,
  endpointId: string,
  { sealed, keyVersion }: SealedSecret,
  overlapMs: number,
): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set
  sealed = $2,
  seal_version = $3,
  former_sealed = case when $4 > 0 then sealed end,
  former_version = case when $4 > 0 then seal_version end,
  former_until = case when $4 > 0 then now() + $4 * interval '1 millisecond' end
where endpoint_id = $1`,
    values: [endpointId, sealed, keyVersion, overlapMs],
  })
}

/** Marks the endpoint as removed and erases its secrets and its code. */
export async function remove(db: Db, endpointId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set
  removed_at = now(),
  sealed = null,
  seal_version = null,
  former_sealed = null,
  former_version = null,
  former_until = null,
  mac = null,
  mac_version = null
where endpoint_id = $1`,
    values: [endpointId],
  })
}

/** Sets an endpoint's code. `former`: only in place of this code. False if no row was changed. */
export async function setMac(
  db: Db,
  endpointId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.endpoint
set mac = $2, mac_version = $3
where endpoint_id = $1 and ($4::bytea is null or mac = $4)`,
    values: [endpointId, mac, macVersion, former ?? null],
  })
  return count === 1
}

export async function disable(db: Db, endpointId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set disabled_at = coalesce(disabled_at, now())
where endpoint_id = $1`,
    values: [endpointId],
  })
}

export async function enable(db: Db, endpointId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set disabled_at = null, slow_until = null, at_once = 1
where endpoint_id = $1`,
    values: [endpointId],
  })
}

/** After a sign that the endpoint is slow: one request at a time, and none within the next `ms`. */
export async function slow(db: Db, endpointId: string, ms: number): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set at_once = 1,
  slow_until = greatest(slow_until, now() + $2 * interval '1 millisecond')
where endpoint_id = $1`,
    values: [endpointId, ms],
  })
}

/** After a success: one more request at a time, up to AT_ONCE_MAX. */
export async function recover(db: Db, endpointId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.endpoint
set at_once = at_once + 1
where endpoint_id = $1 and at_once < $2`,
    values: [endpointId, AT_ONCE_MAX],
  })
}
