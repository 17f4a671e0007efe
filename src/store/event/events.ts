// Events to which clients may have subscribed. Each is written once, in the transaction of the change that it reports.
// Receivers and attempts are decided elsewhere.
import { canonical } from '../../job/envelope/digest.ts'
import type { EventType } from '../../job/event.ts'
import { type Code, type Coded, type Coder, codeOf, isCoded } from '../codes.ts'
import { type Column, rowSet } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Event {
  type: EventType
  clientId: string
  /** The id of the event's subject, for example of a batch. */
  subject: string
  /** If there are several revisions for one subject, the highest is valid. */
  revision: number
  /** Only names, ids and counts. */
  data: Record<string, unknown>
}

export interface StoredEvent extends Event {
  eventId: number
  /** When it happened, ms since the epoch. */
  createdAt: number
}

/** What the code of an event covers. */
function textOf({ type, clientId, subject, revision, data }: Event): string {
  return JSON.stringify(['event/1', type, clientId, subject, revision, canonical(data)])
}

/** Whether tokenmill wrote the event as it is. Throws `Fault('key_unavailable')` for a key that this process doesn't have yet. */
export function isProved(coder: Pick<Coder, 'receiptMacBy'>, event: Event & Coded): boolean {
  return isCoded(coder, textOf(event), event)
}

const COLUMNS: readonly Column<Event & Code>[] = [
  { name: 'type', type: 'text', text: event => event.type, plain: true },
  { name: 'client_id', type: 'text', text: event => event.clientId, plain: false },
  { name: 'subject', type: 'text', text: event => event.subject, plain: false },
  { name: 'revision', type: 'integer', text: event => event.revision, plain: true },
  { name: 'data', type: 'jsonb', text: event => JSON.stringify(event.data), plain: false },
  { name: 'mac', type: 'bytea', text: event => `\\x${event.mac.toString('hex')}`, plain: false },
  { name: 'mac_version', type: 'smallint', text: event => event.macVersion, plain: true },
]

/** Inserts events, of which no two may have the same client and subject. Returns them in the order given. */
export async function insertAll(db: Db, coder: Coder, events: readonly Event[]): Promise<StoredEvent[]> {
  if (events.length === 0) return []
  const { shape, source, values } = rowSet(
    COLUMNS,
    events.map(event => ({ ...event, ...codeOf(coder, textOf(event)) })),
  )
  const { rows } = await db.query<Omit<StoredEvent, 'type' | 'revision' | 'data'>>({
    name: `events-insert-${shape}`,
    text: `insert into tokenmill.event (
  type,
  client_id,
  subject,
  revision,
  data,
  mac,
  mac_version
)
select
  v.type,
  v.client_id,
  v.subject,
  v.revision,
  v.data,
  v.mac,
  v.mac_version
from ${source}
returning
  event_id as "eventId",
  client_id as "clientId",
  subject,
  created_at as "createdAt"`,
    values,
  })
  const nameOf = (clientId: string, subject: string) => `${clientId}\n${subject}`
  const stored = new Map(rows.map(row => [nameOf(row.clientId, row.subject), row]))
  return events.map(event => {
    const row = stored.get(nameOf(event.clientId, event.subject))
    if (!row) throw new Error('broken law: an event that was written is returned')
    return { ...event, eventId: row.eventId, createdAt: row.createdAt }
  })
}

const READ_COLUMNS = `event_id as "eventId",
    type,
    client_id as "clientId",
    subject,
    revision,
    data,
    mac,
    mac_version as "macVersion"`

/** Up to `limit` of the newest events, and as many random ones. */
export async function sample(db: Db, limit: number): Promise<(Omit<StoredEvent, 'createdAt'> & Coded)[]> {
  const { rows } = await db.query<Omit<StoredEvent, 'createdAt'> & Coded>({
    text: `with bounds as (
  select
    (select event_id from tokenmill.event order by event_id limit 1) as first,
    (select event_id from tokenmill.event order by event_id desc limit 1) as last
), newest as (
  select ${READ_COLUMNS}
  from tokenmill.event
  order by event_id desc
  limit $1
), scattered as (
  select ${READ_COLUMNS}
  from tokenmill.event
  where event_id = any(array(
    select first + floor(random() * (last - first + 1))::bigint
    from bounds
    cross join generate_series(1, $1)
  ))
)
select *
from newest
union
select *
from scattered`,
    values: [limit],
  })
  return rows
}

/** The revision of the next event about this subject. The caller has locked the subject's row. */
export async function nextRevision(db: Db, clientId: string, subject: string): Promise<number> {
  const { rows } = await db.query<{ revision: number }>({
    text: `select coalesce(max(revision), 0) + 1 as revision
from tokenmill.event
where client_id = $1 and subject = $2`,
    values: [clientId, subject],
  })
  return rows[0]?.revision ?? 1
}

/**
 * Erases up to `limit` events from before `before` (ms), with their deliveries: no further attempt of an open delivery
 * begins.
 */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.event
  where event_id = any(array(
  select event_id
  from tokenmill.event
  where created_at < $1
  order by created_at
  limit $2
))`,
    values: [new Date(before), limit],
  })
  return count
}
