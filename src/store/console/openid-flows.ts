// People on their way to an OpenID provider and back. A row is found by the state that the provider hands back and by the cookie of
// the browser that began; it is used once. Neither value is stored, only hashes of them.
import type { Db } from '../pool.ts'

/** How long a person has at the provider, in ms. */
export const FLOW_MS = 10 * 60_000

export interface Flow {
  /** SHA-256. */
  stateHash: Buffer
  /** SHA-256. */
  browserHash: Buffer
  nonce: string
  /** Of PKCE. */
  verifier: string
  /** The session that connects an account; null: a sign-in. */
  sessionHash: Buffer | null
  /** The page to which a sign-in leads. */
  destination: string
}

/** A flow that is being used. */
export interface UsedFlow extends Pick<Flow, 'nonce' | 'verifier' | 'sessionHash' | 'destination'> {
  /** ms since the epoch. */
  endsAt: number
}

export async function insert(db: Db, flow: Flow): Promise<void> {
  const { stateHash, browserHash, nonce, verifier, sessionHash, destination } = flow
  await db.query({
    text: `insert into tokenmill.openid_flow (
  state_hash,
  browser_hash,
  nonce,
  verifier,
  purpose,
  session_hash,
  destination,
  expires_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  now() + interval '${FLOW_MS} ms'
)`,
    values: [
      ...[stateHash, browserHash, nonce, verifier],
      ...[sessionHash === null ? 'sign-in' : 'connect', sessionHash, destination],
    ],
  })
}

/** Uses the flow: once, in time, and only in the browser that began it. */
export async function use(
  db: Db,
  { stateHash, browserHash }: Pick<Flow, 'stateHash' | 'browserHash'>,
): Promise<UsedFlow | undefined> {
  const { rows } = await db.query<UsedFlow>({
    text: `update tokenmill.openid_flow
set used_at = now()
where state_hash = $1 and browser_hash = $2 and used_at is null and expires_at > now()
returning
  nonce,
  verifier,
  session_hash as "sessionHash",
  destination,
  expires_at as "endsAt"`,
    values: [stateHash, browserHash],
  })
  return rows[0]
}

/** Keeps the account that a flow has found, for the person to confirm. */
export async function setSubject(db: Db, stateHash: Buffer, subject: string): Promise<void> {
  await db.query({
    text: `update tokenmill.openid_flow
set subject = $2
where state_hash = $1 and used_at is not null and purpose = 'connect'`,
    values: [stateHash, subject],
  })
}

/** The latest flow of this session that has found an account. */
export async function findLatest(
  db: Db,
  sessionHash: Buffer,
): Promise<{ stateHash: Buffer; subject: string } | undefined> {
  const { rows } = await db.query<{ stateHash: Buffer; subject: string }>({
    text: `select state_hash as "stateHash", subject
from tokenmill.openid_flow
where session_hash = $1 and subject is not null and expires_at > now()
order by used_at desc
limit 1`,
    values: [sessionHash],
  })
  return rows[0]
}

/** The account that this flow of this session has found. */
export async function findSubject(
  db: Db,
  { stateHash, sessionHash }: { stateHash: Buffer; sessionHash: Buffer },
): Promise<string | undefined> {
  const { rows } = await db.query<{ subject: string }>({
    text: `select subject
from tokenmill.openid_flow
where state_hash = $1 and session_hash = $2 and subject is not null and expires_at > now()`,
    values: [stateHash, sessionHash],
  })
  return rows[0]?.subject
}

export async function removeOver(db: Db): Promise<void> {
  await db.query({
    text: `delete from tokenmill.openid_flow
where expires_at < now()`,
  })
}
