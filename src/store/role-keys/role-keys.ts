// The key pairs of roles without the key-encryption key, by their public halves. The reader role may not select them.
import type { Db } from '../pool.ts'

export interface RoleKeyRow {
  /** The thumbprint of the public half. */
  kid: string
  role: 'gateway'
  publicJwk: Record<string, unknown>
  /** A secret of the role's file, sealed under the data key `private-half`. */
  sealed: Buffer
  keyVersion: number
}

/** The key pairs that weren't forgotten, oldest first. */
export async function list(db: Db): Promise<RoleKeyRow[]> {
  const { rows } = await db.query<RoleKeyRow>({
    text: `select
  kid,
  role,
  public_jwk as "publicJwk",
  sealed,
  key_version as "keyVersion"
from tokenmill.role_key
where forgotten_at is null
order by created_at, kid`,
  })
  return rows
}

/** Undefined if there never was such a key. */
export async function findState(db: Db, kid: string): Promise<'known' | 'forgotten' | undefined> {
  const { rows } = await db.query<{ forgotten: boolean }>({
    text: `select forgotten_at is not null as forgotten
from tokenmill.role_key
where kid = $1`,
    values: [kid],
  })
  return rows[0] && (rows[0].forgotten ? 'forgotten' : 'known')
}

/** Inserts a key. False if it is or was there. */
export async function insert(db: Db, key: RoleKeyRow): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.role_key (
  kid,
  role,
  public_jwk,
  sealed,
  key_version
)
values (
  $1,
  $2,
  $3::jsonb,
  $4,
  $5
)
on conflict (kid) do nothing`,
    values: [key.kid, key.role, JSON.stringify(key.publicJwk), key.sealed, key.keyVersion],
  })
  return count === 1
}

/** Marks a key as forgotten: nothing is encrypted to it any more. False if there is no such key. */
export async function forget(db: Db, kid: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.role_key
set forgotten_at = now(), sealed = null, key_version = null
where kid = $1 and forgotten_at is null`,
    values: [kid],
  })
  return count === 1
}
