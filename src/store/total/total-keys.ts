// The keys of the totals that both sides of a migration compute: one sealed key for each migration, by its name. Sign-off
// destroys the key; the row stays, so that the name isn't used again.
import type { Db } from '../pool.ts'

export interface SealedTotalKey {
  sealed: Buffer
  keyVersion: number
}

export interface TotalKey {
  migration: string
  /** Null once it is destroyed. */
  key: SealedTotalKey | null
  /** ms since the epoch. */
  createdAt: number
  destroyedAt: number | null
}

type Row = Omit<TotalKey, 'key'> & { sealed: Buffer | null; keyVersion: number | null }

export async function find(db: Db, migration: string): Promise<TotalKey | undefined> {
  const { rows } = await db.query<Row>({
    text: `select
  migration,
  sealed,
  key_version as "keyVersion",
  created_at as "createdAt",
  destroyed_at as "destroyedAt"
from tokenmill.manifest_key
where migration = $1`,
    values: [migration],
  })
  if (!rows[0]) return undefined
  const { sealed, keyVersion, ...life } = rows[0]
  return { ...life, key: sealed && keyVersion ? { sealed, keyVersion } : null }
}

/** As `find`. To the end of the transaction nobody else destroys the key; with `update` nobody else holds it either. */
export async function hold(db: Db, migration: string, mode: 'share' | 'update'): Promise<TotalKey | undefined> {
  await db.query({
    text: `select
from tokenmill.manifest_key
where migration = $1 for ${mode}`,
    values: [migration],
  })
  return find(db, migration)
}

/** False if the migration has a row already, which stays as it is. */
export async function insert(db: Db, migration: string, { sealed, keyVersion }: SealedTotalKey): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.manifest_key (migration, sealed, key_version)
values ($1, $2, $3)
on conflict (migration) do nothing`,
    values: [migration, sealed, keyVersion],
  })
  return count === 1
}

/** Removes the sealed key; the old version of the row stays on disk until VACUUM. The caller holds the row. */
export async function destroy(db: Db, migration: string): Promise<void> {
  await db.query({
    text: `update tokenmill.manifest_key
set sealed = null, key_version = null, destroyed_at = now()
where migration = $1 and destroyed_at is null`,
    values: [migration],
  })
}
