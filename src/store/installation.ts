// The row of the installation that owns this store: its name, the key-encryption key (KEK) that wraps its keys, and
// whether some process makes reports.
import { ConfigError } from '../config.ts'
import type { Db } from './pool.ts'

interface Installation {
  installationId: string
  kekId: string
  /** ms since the epoch. */
  createdAt: number
}

export async function find(db: Db): Promise<Installation | undefined> {
  const { rows } = await db.query<Installation>({
    text: `select installation_id as "installationId", kek_id as "kekId", created_at as "createdAt"
from tokenmill.installation`,
  })
  return rows[0]
}

/** What a database says whose schema is there and whose rows aren't. */
export const INCOMPLETE = 'DATABASE_URL: the upgrade of the database is incomplete; run `tokenmill schema upgrade`'

/** The row. Throws `ConfigError` if there is none yet. */
export async function get(db: Db): Promise<Installation> {
  const known = await find(db)
  if (!known) throw new ConfigError(INCOMPLETE)
  return known
}

/** Inserts the row. False if there is one, which stays as it is. */
export async function insert(db: Db, installation: Omit<Installation, 'createdAt'>): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.installation (installation_id, kek_id)
values ($1, $2)
on conflict (singleton) do nothing`,
    values: [installation.installationId, installation.kekId],
  })
  return count === 1
}

/** Locks the row until the transaction ends; returns the current key-encryption key's id. */
export async function lockKek(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<Pick<Installation, 'kekId'>>({
    text: `select kek_id as "kekId"
from tokenmill.installation
for update`,
  })
  return rows[0]?.kekId
}

/** Makes `kekId` the current key-encryption key. */
export async function setKek(db: Db, kekId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.installation
set kek_id = $1`,
    values: [kekId],
  })
}

/**
 * Records that some process makes reports. Every such process calls this; one call in half a minute is enough for all
 * of them.
 */
export async function recordReportMaker(db: Db): Promise<void> {
  await db.query({
    text: `update tokenmill.installation
      set reports_made_at = now()
      where reports_made_at is null or reports_made_at < now() - interval '30 seconds'`,
  })
}

/** Whether some process called `recordReportMaker` within the last `withinMs`. */
export async function areReportsMade(db: Db, withinMs: number): Promise<boolean> {
  const { rows } = await db.query<{ made: boolean }>({
    text: `select coalesce(reports_made_at > now() - make_interval(secs => $1), false) as made
from tokenmill.installation`,
    values: [withinMs / 1000],
  })
  return rows[0]?.made === true
}
