// Deliveries: one row per event and URL. The row says when the next attempt is due, so a lost queue loses nothing; a
// job is one attempt. An attempt may change the row only while the row names that attempt as its current one.
import type { EventType } from '../../job/event.ts'
import { plains } from '../columns.ts'
import type { Db, Store } from '../pool.ts'
import type { Endpoint } from './endpoints.ts'

export const DELIVERY_STATES = ['WAITING', 'SENDING', 'DELIVERED', 'FAILED'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

export interface Delivery {
  deliveryId: string
  endpointId: string
  clientId: string
  type: EventType
  subject: string
  revision: number
  state: DeliveryState
  attempt: number
  step: number
  /** ms since the epoch, as are all times here. */
  nextAt: number
  triedAt: number | null
  /** The HTTP status of the last answer; `null` if there was no answer. */
  status: number | null
  reason: string | null
  /** When the event happened. */
  occurredAt: number
}

const COLUMNS = `
  d.delivery_id as "deliveryId",
  d.endpoint_id as "endpointId",
  e.client_id as "clientId",
  e.type,
  e.subject,
  e.revision,
  d.state,
  d.attempt,
  d.step,
  d.next_at as "nextAt",
  d.tried_at as "triedAt",
  d.status,
  d.reason,
  e.created_at as "occurredAt"`
const JOINED = 'tokenmill.delivery as d join tokenmill.event as e using (event_id)'

export async function insertAll(
  db: Db,
  deliveries: readonly { deliveryId: string; eventId: number; endpointId: string }[],
): Promise<void> {
  if (deliveries.length === 0) return
  await db.query({
    name: 'deliveries-insert',
    text: `insert into tokenmill.delivery (delivery_id, event_id, endpoint_id)
select v.id, v.event, v.endpoint
from unnest($1::uuid[], $2::bigint[], $3::uuid[]) as v(id, event, endpoint)`,
    values: [
      plains(deliveries.map(({ deliveryId }) => deliveryId)),
      plains(deliveries.map(({ eventId }) => eventId)),
      plains(deliveries.map(({ endpointId }) => endpointId)),
    ],
  })
}

/** An attempt for which a job is to be sent. */
export interface Attempt {
  deliveryId: string
  attempt: number
  /** The entity of the subscribed client. */
  entityId: string
}

const CLAIM_LOCK = '5c0e7f31-9a42-4d86-b1f7-e2a8c6d40913'

/**
 * Takes due deliveries, for each endpoint at most as many as it may get at once. Also takes deliveries that were taken
 * `leaseMs` ago without a result: their job may be lost. If it still waits in the queue, sending it again does nothing. One
 * whose result is recorded meanwhile is left as it then is.
 */
export function claim(store: Store, { leaseMs, limit }: { leaseMs: number; limit: number }): Promise<Attempt[]> {
  return store.transaction(
    async db => {
      const { rows } = await db.query<Attempt>({
        text: `with due as (
  select
    d.delivery_id,
    'WAITING' as state,
    d.attempt,
    1 as more,
    c.entities[1] as entity_id
  from tokenmill.endpoint as e
  join tokenmill.client as c using (client_id)
  cross join lateral (
    select delivery_id, attempt
    from tokenmill.delivery
    where endpoint_id = e.endpoint_id and state = 'WAITING' and next_at <= now()
    order by next_at
    limit greatest(0, e.at_once - (
      select count(*)
      from tokenmill.delivery as u
      where u.endpoint_id = e.endpoint_id and u.state = 'SENDING'
    ))
  ) as d
  where e.removed_at is null and e.disabled_at is null and c.revoked_at is null and coalesce(e.slow_until, 'epoch') <= now()
  union all
  select
    d.delivery_id,
    'SENDING',
    d.attempt,
    0,
    c.entities[1]
  from tokenmill.endpoint as e
  join tokenmill.client as c using (client_id)
  join tokenmill.delivery as d on d.endpoint_id = e.endpoint_id and d.state = 'SENDING' and d.next_at <= now()
  where c.revoked_at is null
  limit $2
)
update tokenmill.delivery as d
set state = 'SENDING', attempt = d.attempt + due.more,
  next_at = now() + $1 * interval '1 millisecond'
from due
where d.delivery_id = due.delivery_id and d.state = due.state and d.attempt = due.attempt
returning d.delivery_id as "deliveryId", d.attempt, due.entity_id as "entityId"`,
        values: [leaseMs, limit],
      })
      return rows
    },
    { lock: CLAIM_LOCK },
  )
}

/**
 * How many deliveries are open, and when the oldest of those that nothing holds back was due (ms since the epoch).
 * Deliveries of revoked clients are left out, because they are never sent.
 */
export async function measure(db: Db): Promise<{ rows: number; oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | null }>({
    text: `select count(*) as rows, min(d.next_at) filter (
  where d.state = 'WAITING' and d.next_at <= now() and e.removed_at is null
  and e.disabled_at is null and coalesce(e.slow_until, 'epoch') <= now()) as oldest
from tokenmill.delivery as d
join tokenmill.endpoint as e using (endpoint_id)
join tokenmill.client as c using (client_id)
where d.state in ('WAITING', 'SENDING') and c.revoked_at is null`,
  })
  return rows[0] ?? { rows: 0, oldest: null }
}

/** The data by which an attempt sends its request. */
export interface Outgoing
  extends Pick<Endpoint, 'endpointId' | 'clientId' | 'events' | 'disabledAt' | 'mac' | 'macVersion'> {
  deliveryId: string
  step: number
  url: string
  type: EventType
  /** Whom the event is for. */
  addresseeId: string
  subject: string
  revision: number
  data: Record<string, unknown>
  /** The code of the event (events.ts). */
  eventMac: Buffer | null
  eventMacVersion: number | null
  occurredAt: number
  /** The client may act as an operator: it has the role ADMIN. */
  isOperators: boolean
  /** Of an event of a batch: its number in the store. */
  batchNo: number | null
}

/**
 * The data for an attempt; undefined if this attempt isn't, or is no longer, the delivery's current one, or if its
 * client was revoked.
 */
export async function findOutgoing(db: Db, deliveryId: string, attempt: number): Promise<Outgoing | undefined> {
  const { rows } = await db.query<Outgoing>({
    name: 'delivery-outgoing',
    text: `select
  p.endpoint_id as "endpointId",
  p.client_id as "clientId",
  p.events,
  p.disabled_at as "disabledAt",
  p.mac,
  p.mac_version as "macVersion",
  d.delivery_id as "deliveryId",
  d.step,
  p.url,
  e.type,
  e.client_id as "addresseeId",
  e.subject,
  e.revision,
  e.data,
  e.mac as "eventMac",
  e.mac_version as "eventMacVersion",
  e.created_at as "occurredAt",
  'ADMIN' = any(c.roles) as "isOperators",
  case when e.type like 'batch.%' then (
    select b.batch_no
    from tokenmill.batch as b
    where b.client_id = e.client_id and b.batch_id = e.data->>'batch_id'
  ) end as "batchNo"
from ${JOINED}
join tokenmill.endpoint as p using (endpoint_id)
join tokenmill.client as c on c.client_id = p.client_id
where d.delivery_id = $1 and d.attempt = $2 and d.state = 'SENDING' and p.url is not null and p.removed_at is null
  and c.revoked_at is null`,
    values: [deliveryId, attempt],
  })
  return rows[0]
}

/** The result of an attempt. */
export interface Tried {
  /** WAITING: the next attempt is due in `inMs`. `step`: its place in the schedule, from 0. */
  next: { state: 'DELIVERED' | 'FAILED' } | { state: 'WAITING'; inMs: number; step: number }
  status: number | null
  reason: string | null
}

/** Records an attempt's result. False if the attempt isn't, or is no longer, the delivery's current one. */
export async function record(
  db: Db,
  { deliveryId, attempt }: Pick<Attempt, 'deliveryId' | 'attempt'>,
  { next, status, reason }: Tried,
): Promise<boolean> {
  const waits = next.state === 'WAITING' ? next : undefined
  const { count } = await db.query({
    text: `update tokenmill.delivery
set
  state = $3,
  tried_at = now(),
  status = $4,
  reason = $5,
  step = coalesce($6, step),
  failures = case when $3 = 'DELIVERED' then 0 when $3 = 'FAILED' or $6 > step then failures + 1 else failures end,
  next_at = coalesce(now() + $7 * interval '1 millisecond', next_at),
  ended_at = case when $3 <> 'WAITING' then now() end
where delivery_id = $1 and attempt = $2 and state = 'SENDING'`,
    values: [deliveryId, attempt, next.state, status, reason, waits?.step, waits?.inMs],
  })
  return count === 1
}

/**
 * Makes a delivery that ended or waits due now, with its schedule from the beginning. Its count of failures stays until
 * a success. False while an attempt is in progress.
 */
export async function redeliver(db: Db, deliveryId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.delivery
set
  state = 'WAITING',
  step = 0,
  next_at = now(),
  ended_at = null
where delivery_id = $1 and state <> 'SENDING'`,
    values: [deliveryId],
  })
  return count === 1
}

/**
 * Ends all open deliveries of an endpoint: no further attempt begins. An attempt that is under way may still arrive; its
 * result isn't recorded. Returns how many.
 */
export async function endAll(db: Db, endpointId: string, reason: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.delivery
set state = 'FAILED', reason = $2, ended_at = now()
where endpoint_id = $1 and state in ('WAITING', 'SENDING')`,
    values: [endpointId, reason],
  })
  return count
}

export async function find(db: Db, deliveryId: string): Promise<Delivery | undefined> {
  const { rows } = await db.query<Delivery>({
    text: `select ${COLUMNS}
from ${JOINED}
where d.delivery_id = $1`,
    values: [deliveryId],
  })
  return rows[0]
}

export interface Listed {
  endpointId?: string | undefined
  clientId?: string | undefined
  state?: DeliveryState | undefined
  limit: number
}

/** Lists deliveries, newest event first. */
export async function list(db: Db, { endpointId, clientId, state, limit }: Listed): Promise<Delivery[]> {
  const { rows } = await db.query<Delivery>({
    text: `select ${COLUMNS}
from ${JOINED}
where ($1::uuid is null or d.endpoint_id = $1) and ($2::text is null or e.client_id = $2) and ($3::text is null or d.state = $3)
order by d.event_id desc, d.delivery_id
limit $4`,
    values: [endpointId, clientId, state, limit],
  })
  return rows
}
