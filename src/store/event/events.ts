// Events to which clients may have subscribed. Each is written once, in the transaction of the change that it reports.
// Receivers and attempts are decided elsewhere.
import type { EventType } from '../../job/event.ts'
import type { Db } from '../pool.ts'

export interface Event {
  type: EventType
  clientId: string
  /** What the event is about: for example a batch's id. */
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

/** The revision of the next event about this subject. The caller has locked the subject's row. */
export async function nextRevision(db: Db, clientId: string, subject: string): Promise<number> {
  const { rows } = await db.query<{ revision: number }>({
    text: 'select coalesce(max(revision), 0) + 1 as revision from tokenmill.event where client_id = $1 and subject = $2',
    values: [clientId, subject],
  })
  return rows[0]?.revision ?? 1
}

/**
 * Erases up to `limit` events from before `before` (ms), with their deliveries: a delivery that is still open then is
 * never sent.
 */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.event where event_id = any(array(
  select event_id from tokenmill.event where created_at < $1 order by created_at limit $2))`,
    values: [new Date(before), limit],
  })
  return count
}
