// Events: what happened that somebody may have subscribed to, each written once, in the transaction of what happened. Who
// is told, and how often it is tried, is not decided here.
import type { EventType } from '../../job/event.ts'
import type { Db } from '../pool.ts'

export interface Event {
  type: EventType
  clientId: string
  /** Of what it speaks: a batch's id. */
  subject: string
  /** The highest one of a subject holds. */
  revision: number
  /** Names, ids and counts only. */
  data: Record<string, unknown>
}

export interface StoredEvent extends Event {
  eventId: number
  /** ms since the epoch: when it happened. */
  createdAt: number
}

export async function insert(db: Db, event: Event): Promise<StoredEvent> {
  const { type, clientId, subject, revision, data } = event
  const { rows } = await db.query<{ event_id: number; created_at: number }>({
    text: `insert into tokenmill.event (type, client_id, subject, revision, data) values ($1, $2, $3, $4, $5::jsonb)
returning event_id, created_at`,
    values: [type, clientId, subject, revision, JSON.stringify(data)],
  })
  const row = rows[0]
  if (!row) throw new Error('broken law: an event that was written is returned')
  return { ...event, eventId: row.event_id, createdAt: row.created_at }
}

/** Of the next event about this subject; whoever asks holds the subject's row. */
export async function nextRevision(db: Db, clientId: string, subject: string): Promise<number> {
  const { rows } = await db.query<{ revision: number }>({
    text: 'select coalesce(max(revision), 0) + 1 as revision from tokenmill.event where client_id = $1 and subject = $2',
    values: [clientId, subject],
  })
  return rows[0]?.revision ?? 1
}

/** Up to `limit` older ones than `before` (ms), with their deliveries: what was not told by then is not told any more. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.event where event_id = any(array(
  select event_id from tokenmill.event where created_at < $1 order by created_at limit $2))`,
    values: [new Date(before), limit],
  })
  return count
}
