// The passkeys of people: public keys only. src/vault/passkey verifies what they sign. The code of a row covers neither its
// counter nor when it was used.
import type { Db } from '../pool.ts'

export const PASSKEY_ALGORITHMS = ['ES256', 'EdDSA', 'RS256'] as const

export interface Credential {
  /** base64url, as the authenticator gave it. */
  credentialId: string
  personId: string
  publicJwk: Record<string, unknown>
  alg: (typeof PASSKEY_ALGORITHMS)[number]
  /** The domain to which the passkey is bound. */
  rpId: string
  /** 0: the authenticator doesn't count. */
  signCount: number
  /** ms since the epoch. */
  createdAt: number
  lastUsedAt: number | null
  revokedAt: number | null
  mac: Buffer | null
  macVersion: number | null
}

const COLUMNS = `credential_id as "credentialId", person_id as "personId", public_jwk as "publicJwk", alg, rp_id as "rpId",
sign_count as "signCount", created_at as "createdAt", last_used_at as "lastUsedAt", revoked_at as "revokedAt", mac,
mac_version as "macVersion"`

export async function find(db: Db, credentialId: string): Promise<Credential | undefined> {
  const { rows } = await db.query<Credential>({
    text: `select ${COLUMNS}
from tokenmill.person_credential
where credential_id = $1`,
    values: [credentialId],
  })
  return rows[0]
}

/** As `find`; locks the row until the transaction ends, so that of two uses the second sees the first one's counter. */
export async function lock(db: Db, credentialId: string): Promise<Credential | undefined> {
  const { rows } = await db.query<Credential>({
    text: `select ${COLUMNS}
from tokenmill.person_credential
where credential_id = $1
for no key update`,
    values: [credentialId],
  })
  return rows[0]
}

/** All passkeys, oldest first, revoked ones included. */
export async function list(db: Db): Promise<Credential[]> {
  const { rows } = await db.query<Credential>({
    text: `select ${COLUMNS}
from tokenmill.person_credential
order by created_at, credential_id`,
  })
  return rows
}

/** Inserts a passkey without a code. False if this one is known: a revoked passkey never comes back. */
export async function insert(
  db: Db,
  credential: Pick<Credential, 'credentialId' | 'personId' | 'publicJwk' | 'alg' | 'rpId' | 'signCount'>,
): Promise<boolean> {
  const { credentialId, personId, publicJwk, alg, rpId, signCount } = credential
  const { count } = await db.query({
    text: `insert into tokenmill.person_credential (
  credential_id,
  person_id,
  public_jwk,
  alg,
  rp_id,
  sign_count
)
values (
  $1,
  $2,
  $3::jsonb,
  $4,
  $5,
  $6
)
on conflict (credential_id) do nothing`,
    values: [credentialId, personId, JSON.stringify(publicJwk), alg, rpId, signCount],
  })
  return count === 1
}

/** Records a use. The caller has locked the row. */
export async function use(db: Db, credentialId: string, signCount: number): Promise<void> {
  await db.query({
    text: `update tokenmill.person_credential
set sign_count = $2, last_used_at = now()
where credential_id = $1`,
    values: [credentialId, signCount],
  })
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  credentialId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.person_credential
set mac = $2, mac_version = $3
where credential_id = $1 and revoked_at is null and ($4::bytea is null or mac = $4)`,
    values: [credentialId, mac, macVersion, former ?? null],
  })
  return count === 1
}

/** Revokes a passkey, and removes its code. The caller has locked the row. */
export async function revoke(db: Db, credentialId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.person_credential
set revoked_at = now(), mac = null, mac_version = null
where credential_id = $1 and revoked_at is null`,
    values: [credentialId],
  })
}

/** Revokes the passkeys of a person, and removes their codes. Returns how many there were. */
export async function revokeAllOf(db: Db, personId: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.person_credential
set revoked_at = now(), mac = null, mac_version = null
where person_id = $1 and revoked_at is null`,
    values: [personId],
  })
  return count
}

/** Revokes the passkeys that are bound to a domain, and removes their codes. Returns how many there were. */
export async function revokeAllFor(db: Db, rpId: string): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.person_credential
set revoked_at = now(), mac = null, mac_version = null
where rp_id = $1 and revoked_at is null`,
    values: [rpId],
  })
  return count
}
