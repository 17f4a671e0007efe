// Finds reports that are to be removed: old reports, and files without a report. reports.ts deletes the rows; the
// caller removes the files.
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'

interface OldReport {
  reportUid: string
  storageKey: string | null
}

/** Reports created before `before` (ms), oldest first. */
export async function findOld(db: Db, before: number, limit: number): Promise<OldReport[]> {
  const { rows } = await db.query<OldReport>({
    text: `select report_uid as "reportUid", storage_key as "storageKey"
from tokenmill.report
where created_on < $1
order by created_on
limit $2`,
    values: [new Date(before), limit],
  })
  return rows
}

/** Returns those of these file keys that belong to no report. */
export async function findOrphans(db: Db, keys: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ key: string }>({
    text: `select wanted.key
from unnest($1::text[]) as wanted(key)
where not exists (select from tokenmill.report where storage_key = wanted.key)`,
    values: [texts(keys)],
  })
  return rows.map(row => row.key)
}
