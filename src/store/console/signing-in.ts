// Who may sign in: the passkeys of people, and invites that can still be used. It only reads; both are written by workers and
// by commands, which put a code over each row. The console holds no key, so it can't check a code: a row that somebody forged
// lets him look at pages, and do nothing.
import type { Db } from '../pool.ts'

export interface SignInKey {
  credentialId: string
  personId: string
  publicJwk: Record<string, unknown>
  alg: string
  rpId: string
  signCount: number
}

/** A live passkey of a live person. */
export async function findKey(db: Db, credentialId: string): Promise<SignInKey | undefined> {
  const { rows } = await db.query<SignInKey>({
    text: `select
  k.credential_id as "credentialId",
  k.person_id as "personId",
  k.public_jwk as "publicJwk",
  k.alg,
  k.rp_id as "rpId",
  k.sign_count as "signCount"
from tokenmill.person_credential as k
join tokenmill.person as p on p.person_id = k.person_id and p.revoked_at is null
where k.credential_id = $1 and k.revoked_at is null`,
    values: [credentialId],
  })
  return rows[0]
}

/** The ids of a person's live passkeys. */
export async function listKeysOf(db: Db, personId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    text: `select credential_id as id
from tokenmill.person_credential
where person_id = $1 and revoked_at is null
order by created_at
limit 50`,
    values: [personId],
  })
  return rows.map(row => row.id)
}

/** Whether a person has a live passkey for this domain, and so can act. */
export async function hasKey(db: Db, personId: string, rpId: string): Promise<boolean> {
  const { rows } = await db.query({
    text: `select
from tokenmill.person_credential
where person_id = $1 and rp_id = $2 and revoked_at is null
limit 1`,
    values: [personId, rpId],
  })
  return rows.length > 0
}

export interface OwnKey {
  credentialId: string
  rpId: string
  /** ms since the epoch. */
  createdAt: number
}

/** A person's live passkeys, oldest first. */
export async function listOwnKeys(db: Db, personId: string): Promise<OwnKey[]> {
  const { rows } = await db.query<OwnKey>({
    text: `select credential_id as "credentialId", rp_id as "rpId", created_at as "createdAt"
from tokenmill.person_credential
where person_id = $1 and revoked_at is null
order by created_at, credential_id
limit 50`,
    values: [personId],
  })
  return rows
}

export interface OpenInvite {
  inviteId: string
  name: string
  /** The person who enrols anew; null: a new person. */
  personId: string | null
}

/** The invite that is found by this value (SHA-256 of it), if it can still be used. */
export async function findInvite(db: Db, lookupHash: Buffer): Promise<OpenInvite | undefined> {
  const { rows } = await db.query<OpenInvite>({
    text: `select invite_id as "inviteId", name, person_id as "personId"
from tokenmill.invite
where lookup_hash = $1 and used_at is null and expires_at > now()`,
    values: [lookupHash],
  })
  return rows[0]
}

/** Whether passkeys are bound to another domain than this, and none to this. */
export async function areAllElsewhere(db: Db, rpId: string): Promise<boolean> {
  const { rows } = await db.query<{ elsewhere: boolean }>({
    text: `select coalesce(bool_and(rp_id <> $1), false) as elsewhere
from tokenmill.person_credential
where revoked_at is null`,
    values: [rpId],
  })
  return rows[0]?.elsewhere === true
}
