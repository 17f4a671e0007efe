// Audit rows: one per act of an administrator, written in the act's transaction. Token work isn't recorded here; it has
// receipts.
import type { Db } from '../pool.ts'

export interface Audit {
  /** A user of the machine (`cli:name`), a client id, or a role of tokenmill. */
  actor: string
  /** The name of the act: `client.add`, `capture-key.retire`, … */
  action: string
  /** What the act was done to: an id or a name. */
  subject: string
  /** Further facts; never a secret. */
  detail?: Record<string, unknown>
}

/** For a statement that does an act and records it in one: add a `select` of these three columns. */
export const RECORD = 'insert into tokenmill.audit (actor, action, subject)'

export async function insert(db: Db, audit: Audit): Promise<void> {
  await db.query({
    text: 'insert into tokenmill.audit (actor, action, subject, detail) values ($1, $2, $3, $4::jsonb)',
    values: [audit.actor, audit.action, audit.subject, JSON.stringify(audit.detail ?? {})],
  })
}
