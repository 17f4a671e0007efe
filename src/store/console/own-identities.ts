// Accounts at an OpenID provider that people are connected with. It only reads: workers and commands write them, under a code that the
// console can't check, as with passkeys (signing-in.ts). A row that somebody forged lets him look at pages, and do nothing.
import type { Db } from '../pool.ts'

/** A live identity of a live person. */
export interface SignInIdentity {
  identityId: string
  personId: string
}

export async function findIdentity(
  db: Db,
  { issuer, subject }: { issuer: string; subject: string },
): Promise<SignInIdentity | undefined> {
  const { rows } = await db.query<SignInIdentity>({
    text: `select i.identity_id as "identityId", i.person_id as "personId"
from tokenmill.person_identity as i
join tokenmill.person as p on p.person_id = i.person_id and p.revoked_at is null
where i.issuer = $1 and i.subject = $2 and i.revoked_at is null`,
    values: [issuer, subject],
  })
  return rows[0]
}

export interface OwnIdentity {
  identityId: string
  issuer: string
  subject: string
  /** ms since the epoch. */
  createdAt: number
}

/** How many identities a page lists. */
export const OWN_LISTED = 50

/** A person's newest live identities. */
export async function listOwnIdentities(db: Db, personId: string): Promise<OwnIdentity[]> {
  const { rows } = await db.query<OwnIdentity>({
    text: `select
  identity_id as "identityId",
  issuer,
  subject,
  created_at as "createdAt"
from tokenmill.person_identity
where person_id = $1 and revoked_at is null
order by created_at desc, identity_id
limit ${OWN_LISTED}`,
    values: [personId],
  })
  return rows
}

/** A live identity, if it is this person's. */
export async function findOwnIdentity(
  db: Db,
  { personId, identityId }: { personId: string; identityId: string },
): Promise<OwnIdentity | undefined> {
  const { rows } = await db.query<OwnIdentity>({
    text: `select
  identity_id as "identityId",
  issuer,
  subject,
  created_at as "createdAt"
from tokenmill.person_identity
where person_id = $1 and identity_id::text = $2 and revoked_at is null`,
    values: [personId, identityId],
  })
  return rows[0]
}
