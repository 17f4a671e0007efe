// Which installation this store belongs to, and by which key-encryption key its keys are wrapped. One row, once.
import type { Db } from './pool.ts'

export interface Installation {
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
