// Which account at an OpenID provider is whose. An identity signs in to the console and signs no act. Whoever has the
// workers' login can insert a row without a right code (src/vault/ring/grants.ts). Such a row counts here as any other: it signs in,
// because the console has no key to check it by, and it keeps its account from everybody else. `doctor` and `person list` report it,
// and disconnecting the account removes it.
import type { Db } from '../pool.ts'

/** An account at a provider, as an ID token names it. */
export interface Account {
  issuer: string
  subject: string
}

export interface Identity extends Account {
  identityId: string
  personId: string
  /** ms since the epoch. */
  createdAt: number
  revokedAt: number | null
  mac: Buffer | null
  macVersion: number | null
}

const COLUMNS = `identity_id as "identityId", person_id as "personId", issuer, subject, created_at as "createdAt",
revoked_at as "revokedAt", mac, mac_version as "macVersion"`

export async function find(db: Db, identityId: string): Promise<Identity | undefined> {
  const { rows } = await db.query<Identity>({
    text: `select ${COLUMNS}
from tokenmill.person_identity
where identity_id = $1`,
    values: [identityId],
  })
  return rows[0]
}

/** The identity of this account that isn't revoked. */
export async function findLive(db: Db, { issuer, subject }: Account): Promise<Identity | undefined> {
  const { rows } = await db.query<Identity>({
    text: `select ${COLUMNS}
from tokenmill.person_identity
where issuer = $1 and subject = $2 and revoked_at is null`,
    values: [issuer, subject],
  })
  return rows[0]
}

/** As `findLive`; locks the row until the transaction ends. */
export async function lockLive(db: Db, { issuer, subject }: Account): Promise<Identity | undefined> {
  const { rows } = await db.query<Identity>({
    text: `select ${COLUMNS}
from tokenmill.person_identity
where issuer = $1 and subject = $2 and revoked_at is null
for no key update`,
    values: [issuer, subject],
  })
  return rows[0]
}

/** All identities, oldest first, revoked ones included. */
export async function list(db: Db): Promise<Identity[]> {
  const { rows } = await db.query<Identity>({
    text: `select ${COLUMNS}
from tokenmill.person_identity
order by created_at, identity_id`,
  })
  return rows
}

/** Inserts an identity without a code. False if the account is somebody's. */
export async function insert(
  db: Db,
  { identityId, personId, issuer, subject }: Pick<Identity, 'identityId' | 'personId' | 'issuer' | 'subject'>,
): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.person_identity (
  identity_id,
  person_id,
  issuer,
  subject
)
values (
  $1,
  $2,
  $3,
  $4
)
on conflict do nothing`,
    values: [identityId, personId, issuer, subject],
  })
  return count === 1
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  identityId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.person_identity
set mac = $2, mac_version = $3
where identity_id = $1 and revoked_at is null and ($4::bytea is null or mac = $4)`,
    values: [identityId, mac, macVersion, former ?? null],
  })
  return count === 1
}

/** Revokes an identity, and removes its code. The caller has locked the row. */
export async function revoke(db: Db, identityId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.person_identity
set revoked_at = now(), mac = null, mac_version = null
where identity_id = $1 and revoked_at is null`,
    values: [identityId],
  })
}

/** Revokes the identities of a person, and removes their codes. Returns how many there were. */
export async function revokeAllOf(db: Db, personId: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.person_identity
set revoked_at = now(), mac = null, mac_version = null
where person_id = $1 and revoked_at is null`,
    values: [personId],
  })
  return count
}
