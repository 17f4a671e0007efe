// Events: what happened that somebody may have subscribed to, each written once, in the transaction of what happened. Who
// is told, and how often it is tried, is not decided here.
import type { Db } from '../pool.ts'

export interface Event {
  type: 'batch.finished'
  clientId: string
  /** Of what it speaks: a batch's id. */
  subject: string
  /** The highest one of a subject holds. */
  revision: number
  /** Names and counts only. */
  data: Record<string, unknown>
}

export async function insert(db: Db, { type, clientId, subject, revision, data }: Event): Promise<void> {
  await db.query({
    text: `insert into tokenmill.event (type, client_id, subject, revision, data) values ($1, $2, $3, $4, $5::jsonb)`,
    values: [type, clientId, subject, revision, JSON.stringify(data)],
  })
}
