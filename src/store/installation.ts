// The installation that this store belongs to, the key-encryption key that wraps its keys, and whether some process
// makes reports. One row.
import type { Db } from './pool.ts'

interface Installation {
  installationId: string
  kekId: string
  /** ms since the epoch. */
  createdAt: number
}

export async function find(db: Db): Promise<Installation | undefined> {
  const { rows } = await db.query<{ installation_id: string; kek_id: string; created_at: number }>({
    text: 'select installation_id, kek_id, created_at from tokenmill.installation',
  })
  const row = rows[0]
  return row && { installationId: row.installation_id, kekId: row.kek_id, createdAt: row.created_at }
}

/** False where there is one; it stays as it is. */
export async function insert(db: Db, installation: Omit<Installation, 'createdAt'>): Promise<boolean> {
  const { count } = await db.query({
    text: 'insert into tokenmill.installation (installation_id, kek_id) values ($1, $2) on conflict (singleton) do nothing',
    values: [installation.installationId, installation.kekId],
  })
  return count === 1
}

/** Records that this process makes reports. Each such process repeats it; once in half a minute is enough for all. */
export async function recordReportMaker(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.installation set reports_made_at = now()
      where reports_made_at is null or reports_made_at < now() - interval '30 seconds'`,
  })
}

/** Whether some process recorded that within the last `withinMs`. */
export async function areReportsMade(db: Db, withinMs: number): Promise<boolean> {
  const { rows } = await db.query<{ made: boolean }>({
    text: `select coalesce(reports_made_at > now() - make_interval(secs => $1), false) as made from tokenmill.installation`,
    values: [withinMs / 1000],
  })
  return rows[0]?.made === true
}
