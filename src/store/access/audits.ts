// Audit rows: one row for every act of an administrator, written in the transaction of the act. It is no log of token
// work; receipts are.
import type { Db } from '../pool.ts'

export interface Audit {
  /** A user of the machine (`cli:name`), a client id, or a role of tokenmill. */
  actor: string
  /** The act: `client.add`, `capture-key.retire`, … */
  action: string
  /** The object of the act. */
  subject: string
  /** Never a secret. */
  detail?: Record<string, unknown>
}

/** For a statement that does an act and records it: add a `select` of these three. */
export const RECORD = 'insert into tokenmill.audit (actor, action, subject)'

export async function insert(db: Db, audit: Audit): Promise<void> {
  await db.query({
    text: 'insert into tokenmill.audit (actor, action, subject, detail) values ($1, $2, $3, $4::jsonb)',
    values: [audit.actor, audit.action, audit.subject, JSON.stringify(audit.detail ?? {})],
  })
}
