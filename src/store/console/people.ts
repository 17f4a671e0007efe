// People, their passkeys and their invites as the console shows them. Only people for all entities see any of it: for others every
// statement finds nothing. The console holds no key, so it can't check the codes of these rows; workers do before an act.
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'
import { LIVE } from './sessions.ts'

export interface SeenPerson {
  personId: string
  name: string
  roles: string[]
  /** Null: all. */
  entities: string[] | null
  isLocal: boolean
  /** ms since the epoch. */
  createdAt: number
  revokedAt: number | null
  /** Live passkeys, and how many of them are for the domain of this console. */
  passkeys: number
  fitting: number
  /** Live accounts at an OpenID provider. */
  accounts: number
  /** Live sessions. */
  sessions: number
  /** The last request of a session that is kept; null: none is. */
  seenAt: number | null
  /** The newest sign-in; null: none is known. */
  signedInAt: number | null
}

const ALL = '$1::uuid[] is null'
const COLUMNS = `p.person_id as "personId", p.name, p.roles, p.entities, p.is_local as "isLocal", p.created_at as "createdAt",
p.revoked_at as "revokedAt"`
const RAW = 'p.person_id, p.name, p.roles, p.entities, p.is_local, p.created_at, p.revoked_at'
const COUNTS = 'k.passkeys, k.fitting, d.accounts, s.sessions, s."seenAt", s."signedInAt"'

/** Of each person p. $2: the domain of the console. */
const COUNTED = `cross join lateral (
  select count(*) as passkeys, count(*) filter (where k.rp_id = $2) as fitting from tokenmill.person_credential as k
  where k.person_id = p.person_id and k.revoked_at is null) as k
cross join lateral (
  select count(*) as accounts from tokenmill.person_identity as d where d.person_id = p.person_id and d.revoked_at is null) as d
cross join lateral (
  select count(*) filter (where p.revoked_at is null and ${LIVE}) as sessions, max(s.seen_at) as "seenAt", max(s.created_at) as "signedInAt"
  from tokenmill.session as s where s.person_id = p.person_id) as s`

interface Listing {
  rpId: string
  /** The last person of the page before. */
  after?: string | undefined
  limit: number
}

/** Live people, by name. */
export async function list(sight: Sight, db: Db, { rpId, after, limit }: Listing): Promise<SeenPerson[]> {
  const { rows } = await db.query<SeenPerson>({
    text: `select ${COLUMNS}, ${COUNTS}
  from (
  select ${RAW}
  from tokenmill.person as p
  where ${ALL} and p.revoked_at is null and ($3::uuid is null or p.name > (select name from tokenmill.person where person_id = $3))
  order by p.name
  limit $4
) as p ${COUNTED}
  order by p.name`,
    values: [entitiesOf(sight), rpId, after ?? null, limit],
  })
  return rows
}

/** People who were revoked, the last one first. */
export async function listRevoked(sight: Sight, db: Db, { rpId, after, limit }: Listing): Promise<SeenPerson[]> {
  const { rows } = await db.query<SeenPerson>({
    text: `select ${COLUMNS}, ${COUNTS}
  from (
  select ${RAW}
  from tokenmill.person as p
  where ${ALL} and p.revoked_at is not null and ($3::uuid is null or p.revoked_at < (select revoked_at from tokenmill.person where person_id = $3)
    or (p.revoked_at = (select revoked_at from tokenmill.person where person_id = $3) and p.person_id > $3))
  order by p.revoked_at desc, p.person_id
  limit $4
) as p ${COUNTED}
  order by p.revoked_at desc, p.person_id`,
    values: [entitiesOf(sight), rpId, after ?? null, limit],
  })
  return rows
}

/** Also a person who was revoked. */
export async function find(
  sight: Sight,
  db: Db,
  { personId, rpId }: { personId: string; rpId: string },
): Promise<SeenPerson | undefined> {
  const { rows } = await db.query<SeenPerson>({
    text: `select ${COLUMNS}, ${COUNTS}
from tokenmill.person as p ${COUNTED}
where ${ALL} and p.person_id = $3`,
    values: [entitiesOf(sight), rpId, personId],
  })
  return rows[0]
}

/** How many people can act here as administrators; two stand for two or more. */
export async function countAdmins(sight: Sight, db: Db, rpId: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    text: `select count(*) as n
  from (
  select
  from tokenmill.person as p
  where ${ALL} and p.revoked_at is null and not p.is_local
  and 'ADMIN' = any(p.roles) and p.entities is null and exists (
    select
    from tokenmill.person_credential as k
    where k.person_id = p.person_id and k.rp_id = $2 and k.revoked_at is null
  )
  order by p.name
  limit 2
) as found`,
    values: [entitiesOf(sight), rpId],
  })
  return rows[0]?.n ?? 0
}

export interface SeenPasskey {
  credentialId: string
  rpId: string
  createdAt: number
  /** The last act that it signed. */
  lastUsedAt: number | null
}

/** Live passkeys of a person, oldest first. */
export async function listPasskeys(sight: Sight, db: Db, personId: string): Promise<SeenPasskey[]> {
  const { rows } = await db.query<SeenPasskey>({
    text: `select
  k.credential_id as "credentialId",
  k.rp_id as "rpId",
  k.created_at as "createdAt",
  k.last_used_at as "lastUsedAt"
from tokenmill.person_credential as k
where ${ALL} and k.person_id = $2 and k.revoked_at is null
order by k.created_at, k.credential_id
limit 50`,
    values: [entitiesOf(sight), personId],
  })
  return rows
}

/** An account at an OpenID provider by which the person signs in, too. */
export interface SeenAccount {
  issuer: string
  subject: string
  createdAt: number
}

/** The newest live accounts of a person. */
export async function listAccounts(sight: Sight, db: Db, personId: string): Promise<SeenAccount[]> {
  const { rows } = await db.query<SeenAccount>({
    text: `select d.issuer, d.subject, d.created_at as "createdAt"
from tokenmill.person_identity as d
where ${ALL} and d.person_id = $2 and d.revoked_at is null
order by d.created_at desc, d.identity_id
limit 50`,
    values: [entitiesOf(sight), personId],
  })
  return rows
}

/** A row of the audit: what a person did, or tried. */
export interface SeenDeed {
  auditId: number
  /** The number of the row; null: it gets one within seconds. */
  seq: number | null
  at: number
  action: string
  subject: string
  outcome: string
}

/** What a person did, newest first. */
export async function listDeeds(
  sight: Sight,
  db: Db,
  { personId, limit }: { personId: string; limit: number },
): Promise<SeenDeed[]> {
  const { rows } = await db.query<SeenDeed>({
    text: `select
  a.audit_id as "auditId",
  a.seq,
  a.at,
  a.action,
  a.subject,
  a.outcome
from tokenmill.audit as a
where ${ALL} and a.actor = $2
order by a.at desc, a.audit_id desc
limit $3`,
    values: [entitiesOf(sight), `person:${personId}`, limit],
  })
  return rows
}

export interface SeenInvite {
  inviteId: string
  name: string
  roles: string[]
  /** Null: all. */
  entities: string[] | null
  /** The person who gets a new passkey; null: a new person. */
  personId: string | null
  invitedBy: string
  /** The account that the person gets with the passkey; both null: none. */
  issuer: string | null
  subject: string | null
  /** The name of the person who invited; null: a client or a machine did. */
  inviter: string | null
  /** ms since the epoch. */
  createdAt: number
  expiresAt: number
  usedAt: number | null
}

const INVITE = `i.invite_id as "inviteId", i.name, i.roles, i.entities, i.person_id as "personId", i.invited_by as "invitedBy",
i.issuer, i.subject, p.name as inviter, i.created_at as "createdAt", i.expires_at as "expiresAt", i.used_at as "usedAt"`
const INVITES = `from tokenmill.invite as i left join tokenmill.person as p
  on p.person_id = (case when i.invited_by ~ '^person:[0-9a-f-]{36}$' then substr(i.invited_by, 8) end)::uuid`

/** Invites that can still be used, the last to end first. */
export async function listInvites(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenInvite[]> {
  const { rows } = await db.query<SeenInvite>({
    text: `select ${INVITE} ${INVITES}
where ${ALL} and i.used_at is null and i.expires_at > now()
order by i.expires_at desc, i.invite_id desc
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}

/** Also one that was used or has expired. */
export async function findInvite(sight: Sight, db: Db, inviteId: string): Promise<SeenInvite | undefined> {
  const { rows } = await db.query<SeenInvite>({
    text: `select ${INVITE} ${INVITES}
where ${ALL} and i.invite_id = $2`,
    values: [entitiesOf(sight), inviteId],
  })
  return rows[0]
}

/** The invite that was made with this key. */
export async function findInviteByKey(sight: Sight, db: Db, lookupHash: Buffer): Promise<SeenInvite | undefined> {
  const { rows } = await db.query<SeenInvite>({
    text: `select ${INVITE} ${INVITES}
where ${ALL} and i.lookup_hash = $2`,
    values: [entitiesOf(sight), lookupHash],
  })
  return rows[0]
}

/** An entity that owns scopes, for whoever limits a person to entities. */
export interface SeenEntity {
  entityId: string
  /** Some of its scopes. */
  scopes: string[]
}

/** Entities that own scopes, in the order of their ids. */
export async function listEntities(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenEntity[]> {
  const { rows } = await db.query<SeenEntity>({
    text: `select s.entity_id as "entityId", (array_agg(s.token_scope order by s.token_scope))[1:3] as scopes
from tokenmill.scope as s
where ${ALL}
group by s.entity_id
order by s.entity_id
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}
