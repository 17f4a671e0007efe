// Capture keys: the public half, to which callers encrypt cards, and the private half, sealed under a data key. An alias
// names a line of keys. The vault opens the private half.

import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'
import * as audits from './audits.ts'

export const CAPTURE_KEY_TYPES = ['jwe-rsa', 'jwe-ec', 'pgp'] as const
export type CaptureKeyType = (typeof CAPTURE_KEY_TYPES)[number]

export interface CaptureKeyInfo {
  keyId: string
  alias: string
  /** Its place in the line of its alias, from 1. */
  number: number
  entityId: string
  type: CaptureKeyType
  /** A JWK, or an armored OpenPGP key. */
  publicKey: string
  state: 'ACTIVE' | 'RETIRED' | 'DESTROYED'
  /** ms since the epoch, as are all times here. */
  createdAt: number
  /** The last time at which senders may encrypt to it; it may lie ahead. */
  retiredAt: number | null
  destroyedAt: number | null
  /** The code of the row by which workers know that tokenmill wrote it; null if there is none. */
  mac: Buffer | null
  /** The version of the data key `grant`. */
  macVersion: number | null
  /** The installation's signed statement about the key (JWS); null if there is none yet. */
  statement: string | null
  /** The signing key of the statement, by its `kid`. */
  statedBy: string | null
  statedUntil: number | null
  /** When a card was last decrypted with it, to about a minute. */
  lastUsedAt: number | null
  /** The client of that card. */
  lastUsedBy: string | null
}

interface PrivateHalf {
  /** Null once the private half is destroyed. */
  wrappedPrivate: Buffer | null
  /** The version of the data key `private-half` that sealed it. */
  privateVersion: number | null
}

export type CaptureKeyRecord = CaptureKeyInfo & PrivateHalf

/** The name of a key for people and audit rows: `ALIAS/NUMBER`. */
export function captureKeyName({ alias, number }: Pick<CaptureKeyInfo, 'alias' | 'number'>): string {
  return `${alias}/${number}`
}

const INFO = `key_id as "keyId", alias, number, entity_id as "entityId", type, public_key as "publicKey", state,
created_at as "createdAt", retired_at as "retiredAt", destroyed_at as "destroyedAt", mac, mac_version as "macVersion",
statement, stated_by as "statedBy", stated_until as "statedUntil",
last_used_at as "lastUsedAt", last_used_by as "lastUsedBy"`
const HALF = `wrapped_private as "wrappedPrivate", private_version as "privateVersion"`

/** The keys of a line with their private halves, newest first. The reader role may not select them. */
export async function findLine(db: Db, alias: string): Promise<CaptureKeyRecord[]> {
  const { rows } = await db.query<CaptureKeyRecord>({
    name: 'capture-key-line',
    text: `select ${INFO}, ${HALF}
from tokenmill.capture_key
where alias = $1
order by number desc`,
    values: [alias],
  })
  return rows
}

/** As `findLine`; nobody else changes these keys until the transaction ends. */
export async function lockLine(db: Db, alias: string): Promise<CaptureKeyRecord[]> {
  // In the order in which `noteUses` locks. A key that is added while this waits is seen only by the next statement.
  await db.query({
    text: `select 1
from tokenmill.capture_key
where alias = $1
order by key_id
for no key update`,
    values: [alias],
  })
  return findLine(db, alias)
}

/** Finds the newest key of a line. */
export async function find(db: Db, alias: string): Promise<CaptureKeyRecord | undefined> {
  return (await findLine(db, alias))[0]
}

/** All keys, oldest first; only those of `entityId` if it is given. */
export async function list(db: Db, entityId: string | null = null): Promise<CaptureKeyInfo[]> {
  const { rows } = await db.query<CaptureKeyInfo>({
    text: `select ${INFO}
from tokenmill.capture_key
where $1::uuid is null or entity_id = $1
order by created_at, alias, number`,
    values: [entityId],
  })
  return rows
}

/**
 * A further key of a line is handed out this time after it was made. By then each process has read the line again, and
 * opens cards to the key.
 */
export const SETTLED_MS = 10_000

/** For each line the key to encrypt to: the newest active one that is settled, or else the newest active one. */
export async function listHandedOut(db: Db, entityId: string): Promise<CaptureKeyInfo[]> {
  const { rows } = await db.query<CaptureKeyInfo & { settled: boolean }>({
    name: 'capture-keys-handed-out',
    text: `select distinct on (alias) ${INFO},
  number = 1 or created_at <= now() - make_interval(secs => $2 / 1000.0) as settled
from tokenmill.capture_key
where entity_id = $1 and state = 'ACTIVE'
order by alias, settled desc, number desc`,
    values: [entityId, SETTLED_MS],
  })
  return rows.map(({ settled: _, ...key }) => key).sort((a, b) => b.createdAt - a.createdAt)
}

/** The keys whose private halves aren't destroyed, with these. The reader role may not select them. */
export async function listPrivate(db: Db): Promise<(CaptureKeyRecord & { wrappedPrivate: Buffer })[]> {
  const { rows } = await db.query<CaptureKeyRecord & { wrappedPrivate: Buffer }>({
    text: `select ${INFO}, ${HALF}
from tokenmill.capture_key
where wrapped_private is not null
order by created_at, alias, number`,
  })
  return rows
}

export type NewCaptureKey = Pick<CaptureKeyInfo, 'alias' | 'entityId' | 'type' | 'publicKey'> & {
  /** Default: 1, the first of its line. */
  number?: number
  wrappedPrivate: Buffer
  privateVersion: number | null
}

/** Inserts a key. False if its line, of any entity, has a key of this number. */
export async function insert(db: Db, { number = 1, ...key }: NewCaptureKey): Promise<boolean> {
  // The time of the statement: the transaction may have waited since it began.
  const { count } = await db.query({
    text: `insert into tokenmill.capture_key
(
  alias,
  number,
  entity_id,
  type,
  public_key,
  wrapped_private,
  private_version,
  created_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  clock_timestamp()
)
on conflict (alias, number) do nothing`,
    values: [
      ...[key.alias, number, key.entityId, key.type, key.publicKey],
      ...[key.wrappedPrivate, key.privateVersion],
    ],
  })
  return count === 1
}

/** Sets the code of the row. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  keyId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.capture_key
set mac = $2, mac_version = $3
where key_id = $1 and ($4::bytea is null or mac = $4)`,
    values: [keyId, mac, macVersion, former ?? null],
  })
  return count === 1
}

export interface Stated {
  statement: string
  /** The `kid` of the signing key. */
  statedBy: string
  statedUntil: number
}

/** Changes nothing if the key was retired meanwhile. */
export async function setStatement(db: Db, keyId: string, { statement, statedBy, statedUntil }: Stated): Promise<void> {
  await db.query({
    text: `update tokenmill.capture_key
set statement = $2, stated_by = $3, stated_until = $4
where key_id = $1 and state = 'ACTIVE'`,
    values: [keyId, statement, statedBy, new Date(statedUntil)],
  })
}

/** Active keys without a statement of the signing key `signer` that holds until `until`, by id and after `after`. */
export async function listUnstated(
  db: Db,
  { signer, until, after, limit }: { signer: string; until: number; after: string | null; limit: number },
): Promise<CaptureKeyInfo[]> {
  const { rows } = await db.query<CaptureKeyInfo>({
    name: 'capture-keys-unstated',
    text: `select ${INFO}
from tokenmill.capture_key
where state = 'ACTIVE' and (statement is null or stated_by <> $1 or stated_until < $2) and ($3::uuid is null or key_id > $3)
order by key_id
limit $4`,
    values: [signer, new Date(until), after, limit],
  })
  return rows
}

/**
 * Retires a key as of `until`, ms since the epoch: cards that are under way then can still be decrypted; the private
 * half is destroyed days later (retention.ts). False if the key isn't active.
 */
export async function retire(db: Db, keyId: string, until: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.capture_key
set state = 'RETIRED', retired_at = $2
where key_id = $1 and state = 'ACTIVE'`,
    values: [keyId, new Date(until)],
  })
  return count === 1
}

/**
 * Destroys the private halves of keys whose last permitted use was before `before` (ms since the epoch). After that
 * this store can't decrypt a card that was encrypted to them; a backup may still hold the private half. The rows then name
 * no key of the vault, so they don't hold up the destruction of one. Returns the number of keys.
 */
export async function destroyRetired(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `with destroyed as (
  update tokenmill.capture_key
  set
    state = 'DESTROYED',
    destroyed_at = now(),
    wrapped_private = null,
    private_version = null,
    mac = null,
    mac_version = null
  where state = 'RETIRED' and retired_at < $1
  returning alias, number
)
${audits.RECORD}
select 'retention', 'capture-key.destroy', alias || '/' || number
from destroyed`,
    values: [new Date(before)],
  })
  return count
}

export interface KeyUse {
  keyId: string
  clientId: string
  at: number
}

/** Notes when keys were used, and by whom. An older use than the stored one changes nothing. */
export async function noteUses(db: Db, uses: readonly KeyUse[]): Promise<void> {
  if (uses.length === 0) return
  await db.query({
    name: 'capture-keys-used',
    // Locked in one order, so that two processes don't wait for each other.
    text: `with locked as (
  select key_id
  from tokenmill.capture_key
  where key_id = any($1::uuid[])
  order by key_id
  for no key update
)
update tokenmill.capture_key as k
set last_used_at = v.at, last_used_by = v.client_id
from locked
join unnest($1::uuid[], $2::text[], $3::timestamptz[]) as v(key_id, client_id, at) on v.key_id = locked.key_id
where k.key_id = locked.key_id and (k.last_used_at is null or k.last_used_at < v.at)`,
    values: [
      plains(uses.map(({ keyId }) => keyId)),
      texts(uses.map(({ clientId }) => clientId)),
      plains(uses.map(({ at }) => new Date(at).toISOString())),
    ],
  })
}

/** Notes that clients got an event about a key. False if another process noted that after `after`. */
export async function noteTold(db: Db, keyId: string, { at, after }: { at: number; after: number }): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.capture_key
set told_at = $3
where key_id = $1 and (told_at is null or told_at <= $2)`,
    values: [keyId, new Date(after), new Date(at)],
  })
  return count === 1
}

type CaptureHalf = Pick<CaptureKeyRecord, 'keyId' | 'alias' | 'type'> & {
  wrappedPrivate: Buffer
  privateVersion: number
}

/** Private halves, by id and after `after`. */
export async function listHalves(
  db: Db,
  { after, limit }: { after: string | null; limit: number },
): Promise<CaptureHalf[]> {
  const { rows } = await db.query<CaptureHalf>({
    text: `select
  key_id as "keyId",
  alias,
  type,
  ${HALF}
from tokenmill.capture_key
where wrapped_private is not null and ($1::uuid is null or key_id > $1)
order by key_id
limit $2`,
    values: [after, limit],
  })
  return rows
}
