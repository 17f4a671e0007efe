// Capture keys: the public half, to which callers encrypt cards, and the private half, wrapped by the key-encryption
// key (KEK). The vault unwraps the private half.

import type { Db } from '../pool.ts'
import * as audits from './audits.ts'

export const CAPTURE_KEY_TYPES = ['jwe-rsa', 'jwe-ec', 'pgp'] as const
export type CaptureKeyType = (typeof CAPTURE_KEY_TYPES)[number]

export interface CaptureKeyInfo {
  alias: string
  entityId: string
  type: CaptureKeyType
  /** A JWK, or an armored OpenPGP key. */
  publicKey: string
  state: 'ACTIVE' | 'RETIRED' | 'DESTROYED'
  /** ms since the epoch. */
  createdAt: number
  retiredAt: number | null
  destroyedAt: number | null
}

interface CaptureKeyRecord extends CaptureKeyInfo {
  /** Null once the private half is destroyed. */
  wrappedPrivate: Buffer | null
}

interface InfoRow {
  alias: string
  entity_id: string
  type: CaptureKeyType
  public_key: string
  state: CaptureKeyInfo['state']
  created_at: number
  retired_at: number | null
  destroyed_at: number | null
}

const COLUMNS = 'alias, entity_id, type, public_key, state, created_at, retired_at, destroyed_at'

function infoOf(row: InfoRow): CaptureKeyInfo {
  return {
    alias: row.alias,
    entityId: row.entity_id,
    type: row.type,
    publicKey: row.public_key,
    state: row.state,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
    destroyedAt: row.destroyed_at,
  }
}

/** A key with its private half. The reader role may not select it. */
export async function find(db: Db, alias: string): Promise<CaptureKeyRecord | undefined> {
  const { rows } = await db.query<InfoRow & { wrapped_private: Buffer | null }>({
    name: 'capture-key-find',
    text: `select ${COLUMNS}, wrapped_private from tokenmill.capture_key where alias = $1`,
    values: [alias],
  })
  const row = rows[0]
  return row && { ...infoOf(row), wrappedPrivate: row.wrapped_private }
}

/** All keys, oldest first; only those of `entityId` if it is given. */
export async function list(db: Db, entityId: string | null = null): Promise<CaptureKeyInfo[]> {
  const { rows } = await db.query<InfoRow>({
    text: `select ${COLUMNS} from tokenmill.capture_key where $1::uuid is null or entity_id = $1 order by created_at, alias`,
    values: [entityId],
  })
  return rows.map(infoOf)
}

type NewCaptureKey = Pick<CaptureKeyInfo, 'alias' | 'entityId' | 'type' | 'publicKey'> & {
  wrappedPrivate: Buffer
}

/** Inserts a key. False if the alias is in use, by any entity. */
export async function insert(db: Db, key: NewCaptureKey): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.capture_key (alias, entity_id, type, public_key, wrapped_private) values ($1, $2, $3, $4, $5)
on conflict (alias) do nothing`,
    values: [key.alias, key.entityId, key.type, key.publicKey, key.wrappedPrivate],
  })
  return count === 1
}

/**
 * Retires a key: cards that are under way can still be decrypted; the private half is destroyed days later
 * (retention.ts). False if the key isn't active.
 */
export async function retire(db: Db, alias: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.capture_key set state = 'RETIRED', retired_at = now() where alias = $1 and state = 'ACTIVE'`,
    values: [alias],
  })
  return count === 1
}

/**
 * Destroys the private halves of keys that were retired before `before` (ms since the epoch). After that nobody can
 * decrypt a card that was encrypted to them, wherever a copy lies. Returns the number of keys.
 */
export async function destroyRetired(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `with destroyed as (
  update tokenmill.capture_key set state = 'DESTROYED', wrapped_private = null, destroyed_at = now()
  where state = 'RETIRED' and retired_at < $1 returning alias
)
${audits.RECORD} select 'retention', 'capture-key.destroy', alias from destroyed`,
    values: [new Date(before)],
  })
  return count
}
