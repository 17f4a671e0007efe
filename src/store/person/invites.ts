// Invites: a link with a secret, by which one person enrols one passkey. The store doesn't hold the secret, but two values that
// are derived from it: one finds the invite, the other verifies who enrols.
import type { Db } from '../pool.ts'
import type { PersonRole } from './persons.ts'

export interface Invite {
  inviteId: string
  /** SHA-256 of the value by which the console finds the invite. */
  lookupHash: Buffer
  /** Verifies the enrolment: Ed25519, 32 bytes. */
  publicKey: Buffer
  name: string
  roles: PersonRole[]
  /** Null: all. */
  entities: string[] | null
  /** The person who gets a further passkey; null: a new person. */
  personId: string | null
  invitedBy: string
  /** The identity that the person gets with the passkey; both null: none. */
  issuer: string | null
  subject: string | null
  /** ms since the epoch. */
  expiresAt: number
  usedAt: number | null
  mac: Buffer | null
  macVersion: number | null
}

const COLUMNS = `invite_id as "inviteId", lookup_hash as "lookupHash", public_key as "publicKey", name, roles, entities, person_id as "personId",
invited_by as "invitedBy", issuer, subject, expires_at as "expiresAt", used_at as "usedAt", mac, mac_version as "macVersion"`

export async function find(db: Db, inviteId: string): Promise<Invite | undefined> {
  const { rows } = await db.query<Invite>({
    text: `select ${COLUMNS}
from tokenmill.invite
where invite_id = $1`,
    values: [inviteId],
  })
  return rows[0]
}

/** As `find`; locks the row until the transaction ends. */
export async function lock(db: Db, inviteId: string): Promise<Invite | undefined> {
  const { rows } = await db.query<Invite>({
    text: `select ${COLUMNS}
from tokenmill.invite
where invite_id = $1
for update`,
    values: [inviteId],
  })
  return rows[0]
}

/** All invites, oldest first, those included that were used. */
export async function list(db: Db): Promise<Invite[]> {
  const { rows } = await db.query<Invite>({
    text: `select ${COLUMNS}
from tokenmill.invite
order by created_at, invite_id`,
  })
  return rows
}

/** Inserts an invite without a code. */
export async function insert(db: Db, invite: Omit<Invite, 'usedAt' | 'mac' | 'macVersion'>): Promise<void> {
  const { inviteId, lookupHash, publicKey, name, roles, entities, personId, invitedBy, issuer, subject, expiresAt } =
    invite
  await db.query({
    text: `insert into tokenmill.invite (
  invite_id,
  lookup_hash,
  public_key,
  name,
  roles,
  entities,
  person_id,
  invited_by,
  issuer,
  subject,
  expires_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5::text[],
  $6::uuid[],
  $7,
  $8,
  $9,
  $10,
  $11
)`,
    values: [
      ...[inviteId, lookupHash, publicKey, name, roles, entities, personId, invitedBy],
      ...[issuer, subject, new Date(expiresAt)],
    ],
  })
}

/** Marks an invite as used, and removes its code. The caller has locked the row. */
export async function use(db: Db, inviteId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.invite
set used_at = now(), mac = null, mac_version = null
where invite_id = $1`,
    values: [inviteId],
  })
}

/** Makes the open invites of a person useless: of this id, or of this name. Returns how many there were. */
export async function withdraw(db: Db, { personId, name }: Pick<Invite, 'personId' | 'name'>): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.invite
set used_at = now(), mac = null, mac_version = null
where used_at is null and (person_id = $1 or (person_id is null and name = $2))`,
    values: [personId, name],
  })
  return count
}

/** Makes the open invites useless that a revoked or demoted person made. `invitedBy`: `person:` and the id. */
export async function withdrawBy(db: Db, invitedBy: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.invite
set used_at = now(), mac = null, mac_version = null
where used_at is null and invited_by = $1`,
    values: [invitedBy],
  })
  return count
}

/** Whether an invite, of whatever state, is found by this value. */
export async function isKnown(db: Db, lookupHash: Buffer): Promise<boolean> {
  const { rows } = await db.query({
    text: `select
from tokenmill.invite
where lookup_hash = $1`,
    values: [lookupHash],
  })
  return rows.length > 0
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  inviteId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.invite
set mac = $2, mac_version = $3
where invite_id = $1 and used_at is null and ($4::bytea is null or mac = $4)`,
    values: [inviteId, mac, macVersion, former ?? null],
  })
  return count === 1
}
