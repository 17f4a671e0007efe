// The installation's signing keys for results: public halves, which anybody may read, and private halves, which are
// sealed. A key is ANNOUNCED by a statement that the key before it signs, then ACTIVE, then RETIRED; at each time one key
// is ACTIVE. Public halves stay for ever.
import type { Algorithm } from '../../job/envelope/signature.ts'
import type { Db } from '../pool.ts'

export interface PublicSigningKey {
  kid: string
  alg: Algorithm
  publicJwk: Record<string, unknown>
  state: 'ANNOUNCED' | 'ACTIVE' | 'RETIRED'
  /** The statement (JWS) by which the key before this one announces it; null for the first key. */
  statement: string | null
  /** When it begins to sign, ms since the epoch; of an ANNOUNCED key the planned time. */
  activeAt: number
  /** When it ended, ms since the epoch; null if it hasn't. */
  retiredAt: number | null
  /** The code over the public half, and the version of the data key `grant` that made it. */
  mac: Buffer | null
  macVersion: number | null
}

interface PrivateHalf {
  wrappedPrivate: Buffer
  /** The version of the data key `private-half` that sealed it. */
  privateVersion: number
}

export type SigningKeyRecord = PublicSigningKey & PrivateHalf

export type NewSigningKey = Pick<PublicSigningKey, 'kid' | 'alg' | 'publicJwk'> & PrivateHalf

const COLUMNS = `
  kid,
  alg,
  public_jwk as "publicJwk",
  state,
  statement,
  active_at as "activeAt",
  retired_at as "retiredAt",
  mac,
  mac_version as "macVersion"`
const LIVE_COLUMNS = `${COLUMNS},
  wrapped_private as "wrappedPrivate",
  private_version as "privateVersion"`

/** The public halves of all signing keys, newest first, so that results signed by an older key can still be verified. */
export async function findPublic(db: Db): Promise<PublicSigningKey[]> {
  const { rows } = await db.query<PublicSigningKey>({
    text: `select ${COLUMNS}
from tokenmill.signing_key
order by active_at desc, kid`,
  })
  return rows
}

/** Sets the code over the public half. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(db: Db, kid: string, mac: Buffer, version: number, former?: Buffer): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.signing_key
set mac = $2, mac_version = $3
where kid = $1 and ($4::bytea is null or mac = $4)`,
    values: [kid, mac, version, former ?? null],
  })
  return count === 1
}

/** The keys that have a private half, newest first: the announced one and the one that signs. */
export async function findAll(db: Db): Promise<SigningKeyRecord[]> {
  const { rows } = await db.query<SigningKeyRecord>({
    text: `select ${LIVE_COLUMNS}
from tokenmill.signing_key
where wrapped_private is not null
order by active_at desc, kid`,
  })
  return rows
}

export interface SigningState {
  /** The key that signs now. */
  active: SigningKeyRecord | undefined
  announced: SigningKeyRecord | undefined
  /** The statements of the announced key and of keys that began to sign a short time ago, oldest first. */
  statements: string[]
  /** When the key of the oldest of these statements began to sign, ms since the epoch. */
  oldestAt: number | undefined
}

/** `statementMs`: for how long after a key began to sign its statement is listed. */
export async function findState(db: Db, statementMs: number): Promise<SigningState> {
  // Of a retired key, which is listed for its statement, the private half is null.
  const { rows } = await db.query<SigningKeyRecord>({
    name: 'signing-state',
    text: `select ${LIVE_COLUMNS}
from tokenmill.signing_key
where state <> 'RETIRED' or active_at > now() - make_interval(secs => $1 / 1000.0)
order by active_at, kid`,
    values: [statementMs],
  })
  const stated = rows.filter(
    ({ state, statement, activeAt }) =>
      statement !== null && (state === 'ANNOUNCED' || activeAt > Date.now() - statementMs),
  )
  return {
    active: rows.find(({ state }) => state === 'ACTIVE'),
    announced: rows.find(({ state }) => state === 'ANNOUNCED'),
    statements: stated.flatMap(({ statement }) => statement ?? []),
    oldestAt: stated[0]?.activeAt,
  }
}

/** Inserts the installation's first key, which signs at once. */
export async function insertFirst(db: Db, key: NewSigningKey): Promise<void> {
  await db.query({
    text: `insert into tokenmill.signing_key
(
  kid,
  alg,
  public_jwk,
  wrapped_private,
  private_version,
  state,
  active_at
)
values (
  $1,
  $2,
  $3::jsonb,
  $4,
  $5,
  'ACTIVE',
  now()
)`,
    values: [key.kid, key.alg, JSON.stringify(key.publicJwk), key.wrappedPrivate, key.privateVersion],
  })
}

type SigningHalf = Pick<SigningKeyRecord, 'kid' | 'wrappedPrivate' | 'privateVersion'>

/** All private halves; a retired key has none. */
export async function listHalves(db: Db): Promise<SigningHalf[]> {
  const { rows } = await db.query<SigningHalf>({
    text: `select kid, private_version as "privateVersion", wrapped_private as "wrappedPrivate"
from tokenmill.signing_key
where wrapped_private is not null
order by kid`,
  })
  return rows
}

/** Inserts an announced key. False if a key is announced already. `activeAt`: ms since the epoch. */
export async function announce(db: Db, key: NewSigningKey & { statement: string; activeAt: number }): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.signing_key
(
  kid,
  alg,
  public_jwk,
  wrapped_private,
  private_version,
  state,
  statement,
  active_at
)
values (
  $1,
  $2,
  $3::jsonb,
  $4,
  $5,
  'ANNOUNCED',
  $6,
  to_timestamp($7 / 1000.0)
)
on conflict (state)
where state = 'ANNOUNCED' do nothing`,
    values: [
      key.kid,
      key.alg,
      JSON.stringify(key.publicJwk),
      key.wrappedPrivate,
      key.privateVersion,
      key.statement,
      key.activeAt,
    ],
  })
  return count === 1
}

/** Locks the announced key. `kid`: only this key; `isDue`: only if its time has come by the store's clock. */
export async function lockAnnounced(db: Db, { kid, isDue }: { kid: string; isDue: boolean }): Promise<boolean> {
  const { count } = await db.query({
    text: `select
from tokenmill.signing_key
where state = 'ANNOUNCED' and kid = $1 and (not $2 or active_at <= now())
for update`,
    values: [kid, isDue],
  })
  return count === 1
}

/** Ends the key that signs, and destroys its private half; returns its `kid`. */
export async function retireActive(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ kid: string }>({
    text: `update tokenmill.signing_key
set
  state = 'RETIRED',
  retired_at = now(),
  wrapped_private = null,
  private_version = null
where state = 'ACTIVE'
returning kid`,
  })
  return rows[0]?.kid
}

/** The announced key, which the caller has locked, signs from now on. */
export async function activate(db: Db, kid: string): Promise<void> {
  await db.query({
    text: `update tokenmill.signing_key
set state = 'ACTIVE', active_at = now()
where kid = $1`,
    values: [kid],
  })
}

/** Deletes the announced key, which the caller has locked. It has signed nothing. */
export async function cancelAnnounced(db: Db, kid: string): Promise<void> {
  await db.query({
    text: `delete from tokenmill.signing_key
where kid = $1 and state = 'ANNOUNCED'`,
    values: [kid],
  })
}
