// The sessions of people who signed in to the console. The cookie's value is never stored, only its hash. A session of a
// revoked person, passkey or identity is over at once, because each request reads them with it.
import type { Db } from '../pool.ts'

export const SESSION = {
  /** After this time without a request a session is over. */
  idleMs: 15 * 60_000,
  /** No session lasts longer. */
  lastsMs: 8 * 3_600_000,
} as const

export interface NewSession {
  /** SHA-256 of the cookie's value. */
  sessionHash: Buffer
  personId: string
  /** The passkey that signed in. Null: an identity, or the link of `start`. */
  credentialId: string | null
  /** The identity that signed in, by OpenID. */
  identityId?: string | null | undefined
  address: string
  isLocal: boolean
}

/** A live session and its person. */
export interface LiveSession {
  sessionHash: Buffer
  personId: string
  name: string
  roles: string[]
  /** Null: all. */
  entities: string[] | null
  isLocal: boolean
  /** The identity with which it began; null: a passkey, or the link of `start`. */
  identityId: string | null
  /** ms since the epoch. */
  createdAt: number
  seenAt: number
}

/** Why a session is over, and what it takes: the same words in every statement. $1 is the session's hash. */
export const LIVE = `s.revoked_at is null and s.expires_at > now() and s.seen_at > now() - interval '${SESSION.idleMs} ms'
  and (s.credential_id is null or exists (select from tokenmill.person_credential as k
    where k.credential_id = s.credential_id and k.person_id = s.person_id and k.revoked_at is null))
  and (s.identity_id is null or exists (select from tokenmill.person_identity as i
    where i.identity_id = s.identity_id and i.person_id = s.person_id and i.revoked_at is null))`

export async function insert(db: Db, session: NewSession): Promise<void> {
  await db.query({
    text: `insert into tokenmill.session (
  session_hash,
  person_id,
  credential_id,
  expires_at,
  address,
  is_local,
  identity_id
)
values (
  $1,
  $2,
  $3,
  now() + interval '${SESSION.lastsMs} ms',
  $4,
  $5,
  $6
)`,
    values: [
      ...[session.sessionHash, session.personId, session.credentialId, session.address, session.isLocal],
      session.identityId ?? null,
    ],
  })
}

/** Binds a session to another passkey of its person, who has touched it in this session. The session then needs nothing else. */
export async function bind(db: Db, sessionHash: Buffer, credentialId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.session
set credential_id = $2, identity_id = null
where session_hash = $1 and revoked_at is null`,
    values: [sessionHash, credentialId],
  })
}

/** The live session with this hash. */
export async function find(db: Db, sessionHash: Buffer): Promise<LiveSession | undefined> {
  const { rows } = await db.query<LiveSession>({
    name: 'session-find',
    text: `select
  s.session_hash as "sessionHash",
  s.person_id as "personId",
  p.name,
  p.roles,
  p.entities,
  s.is_local as "isLocal",
  s.identity_id as "identityId",
  s.created_at as "createdAt",
  s.seen_at as "seenAt"
from tokenmill.session as s
join tokenmill.person as p on p.person_id = s.person_id and p.revoked_at is null
where s.session_hash = $1 and ${LIVE}`,
    values: [sessionHash],
  })
  return rows[0]
}

/** Which of these sessions are live, with what their people see. */
export async function listLive(
  db: Db,
  sessionHashes: readonly Buffer[],
): Promise<Pick<LiveSession, 'sessionHash' | 'roles' | 'entities' | 'isLocal'>[]> {
  const { rows } = await db.query<Pick<LiveSession, 'sessionHash' | 'roles' | 'entities' | 'isLocal'>>({
    name: 'sessions-live',
    text: `select
  s.session_hash as "sessionHash",
  p.roles,
  p.entities,
  s.is_local as "isLocal"
from tokenmill.session as s
join tokenmill.person as p on p.person_id = s.person_id and p.revoked_at is null
where s.session_hash = any($1::bytea[]) and ${LIVE}`,
    values: [sessionHashes],
  })
  return rows
}

/** Records a request of the session. */
export async function see(db: Db, sessionHash: Buffer): Promise<void> {
  await db.query({
    name: 'session-see',
    text: `update tokenmill.session
set seen_at = now()
where session_hash = $1 and revoked_at is null`,
    values: [sessionHash],
  })
}

export interface ListedSession {
  sessionHash: Buffer
  address: string
  /** How it began. */
  began: 'passkey' | 'openid' | 'link'
  createdAt: number
  seenAt: number
}

/** The live sessions of a person, the newest first. */
export async function listOf(db: Db, personId: string): Promise<ListedSession[]> {
  const { rows } = await db.query<ListedSession>({
    text: `select
  s.session_hash as "sessionHash",
  s.address,
  s.created_at as "createdAt",
  s.seen_at as "seenAt",
  case when s.identity_id is not null then 'openid' when s.credential_id is not null then 'passkey' else 'link' end as began
from tokenmill.session as s
where s.person_id = $1 and ${LIVE}
order by s.created_at desc
limit 100`,
    values: [personId],
  })
  return rows
}

/** Ends one session. `personId`: only if it is this person's. */
export async function revoke(db: Db, sessionHash: Buffer, personId?: string): Promise<void> {
  await db.query({
    text: `update tokenmill.session
set revoked_at = now()
where session_hash = $1 and ($2::uuid is null or person_id = $2) and revoked_at is null`,
    values: [sessionHash, personId ?? null],
  })
}

/** Ends all sessions of a person. */
export async function revokeAllOf(db: Db, personId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.session
set revoked_at = now()
where person_id = $1 and revoked_at is null`,
    values: [personId],
  })
}

/** Ends all sessions of a person but this one. */
export async function revokeOthersOf(db: Db, personId: string, sessionHash: Buffer): Promise<void> {
  await db.query({
    text: `update tokenmill.session
set revoked_at = now()
where person_id = $1 and session_hash <> $2 and revoked_at is null`,
    values: [personId, sessionHash],
  })
}

/** Ends the sessions that began with an account at another provider than this; null: at any. */
export async function revokeOfOthers(db: Db, issuer: string | null): Promise<void> {
  await db.query({
    text: `update tokenmill.session as s
  set revoked_at = now()
  where s.identity_id is not null and s.revoked_at is null
  and not exists (select from tokenmill.person_identity as i where i.identity_id = s.identity_id and i.issuer = $1)`,
    values: [issuer],
  })
}

/**
 * Removes sessions that are over, but the newest of each person: it says when the person signed in last. Those whose passkey or
 * account was revoked go when they have been idle.
 */
export async function removeOver(db: Db): Promise<void> {
  await db.query({
    text: `delete from tokenmill.session as s
where (s.expires_at < now() or s.revoked_at is not null or s.seen_at < now() - interval '${SESSION.idleMs} ms')
and exists (select from tokenmill.session as n where n.person_id = s.person_id and n.created_at > s.created_at)`,
  })
}
