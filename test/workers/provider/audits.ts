// Reads audit rows for tests.
import type { Audit } from '../../../src/store/access/audits.ts'
import type { Db } from '../../../src/store/pool.ts'

/** The newest first. */
export async function latestAudits(db: Db, limit: number): Promise<Required<Audit>[]> {
  const { rows } = await db.query<Required<Audit>>({
    text: 'select actor, action, subject, detail from tokenmill.audit order by audit_id desc limit $1',
    values: [limit],
  })
  return rows
}
