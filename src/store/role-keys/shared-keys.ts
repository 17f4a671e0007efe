// Data keys that are encrypted to a role without the key-encryption key: each undestroyed version of a shared purpose, for
// each key of the role.

import type { DataKeyState } from '../access/data-keys.ts'
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface SharedVersion {
  purpose: string
  version: number
  state: DataKeyState
  /** The data key as a JWE; null while it isn't encrypted to the role's key. */
  jwe: string | null
}

/**
 * The undestroyed versions of these purposes. `kid`: the role's key; null for a host without one, which gets no
 * encrypted keys.
 */
export async function findAll(db: Db, purposes: readonly string[], kid: string): Promise<SharedVersion[]> {
  const { rows } = await db.query<SharedVersion>({
    name: 'shared-keys',
    text: `select
  k.purpose,
  k.version,
  k.state,
  s.jwe
from tokenmill.data_key as k
left join tokenmill.shared_key as s on s.kid = $2 and s.purpose = k.purpose and s.version = k.version
where k.purpose = any($1::text[]) and k.state <> 'DESTROYED'
order by k.purpose, k.version`,
    values: [texts(purposes), kid],
  })
  return rows
}

export interface Unshared {
  kid: string
  purpose: string
  version: number
}

/** The versions of data keys that aren't encrypted to a role's key yet. */
export async function listMissing(db: Db, purposes: readonly string[]): Promise<Unshared[]> {
  const { rows } = await db.query<Unshared>({
    text: `select r.kid, k.purpose, k.version
from tokenmill.role_key as r
cross join tokenmill.data_key as k
where r.forgotten_at is null and k.purpose = any($1::text[]) and k.state <> 'DESTROYED' and not exists (
  select
  from tokenmill.shared_key as s
  where s.kid = r.kid and s.purpose = k.purpose and s.version = k.version
)
order by r.kid, k.purpose, k.version`,
    values: [texts(purposes)],
  })
  return rows
}

/** Stores a version for a role's key, unless it is there, or the role's key was forgotten meanwhile. */
export async function insert(db: Db, { kid, purpose, version }: Unshared, jwe: string): Promise<void> {
  await db.query({
    text: `insert into tokenmill.shared_key (
  kid,
  purpose,
  version,
  jwe
)
select
  $1,
  $2,
  $3,
  $4
where exists (select from tokenmill.role_key where kid = $1 and forgotten_at is null for share)
on conflict (kid, purpose, version) do nothing`,
    values: [kid, purpose, version, jwe],
  })
}

/** Removes what was encrypted to a role's key. */
export async function removeOf(db: Db, kid: string): Promise<void> {
  await db.query({
    text: `delete from tokenmill.shared_key
where kid = $1`,
    values: [kid],
  })
}

/** Removes a version that was destroyed. */
export async function removeVersion(db: Db, purpose: string, version: number): Promise<void> {
  await db.query({
    text: `delete from tokenmill.shared_key
where purpose = $1 and version = $2`,
    values: [purpose, version],
  })
}
