// Capture keys: the public half, to which callers encrypt cards, and the private half, wrapped by the key-encryption
// key. The vault opens them.

import type { Db } from '../pool.ts'
import * as audits from './audits.ts'

export const CAPTURE_KEY_TYPES = ['jwe-rsa', 'jwe-ec', 'pgp'] as const
export type CaptureKeyType = (typeof CAPTURE_KEY_TYPES)[number]

export interface CaptureKeyInfo {
  alias: string
  entityId: string
  type: CaptureKeyType
  /** JWK or armor. */
  publicKey: string
  state: 'ACTIVE' | 'RETIRED' | 'DESTROYED'
  /** ms since the epoch. */
  createdAt: number
  retiredAt: number | null
  destroyedAt: number | null
}

interface CaptureKeyRecord extends CaptureKeyInfo {
  /** Null once destroyed. */
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

/** With its private half, which the reader role may not select. */
export async function find(db: Db, alias: string): Promise<CaptureKeyRecord | undefined> {
  const { rows } = await db.query<InfoRow & { wrapped_private: Buffer | null }>({
    name: 'capture-key-find',
    text: `select ${COLUMNS}, wrapped_private from tokenmill.capture_key where alias = $1`,
    values: [alias],
  })
  const row = rows[0]
  return row && { ...infoOf(row), wrappedPrivate: row.wrapped_private }
}

/** Oldest first; of one entity where it is named. */
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

/** False where the alias is in use, by any entity. */
export async function insert(db: Db, key: NewCaptureKey): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.capture_key (alias, entity_id, type, public_key, wrapped_private) values ($1, $2, $3, $4, $5)
on conflict (alias) do nothing`,
    values: [key.alias, key.entityId, key.type, key.publicKey, key.wrappedPrivate],
  })
  return count === 1
}

/**
 * The key still opens cards under way; its private half is destroyed days later (retention.ts). False where the key
 * isn't active.
 */
export async function retire(db: Db, alias: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.capture_key set state = 'RETIRED', retired_at = now() where alias = $1 and state = 'ACTIVE'`,
    values: [alias],
  })
  return count === 1
}

/**
 * Destroys the private halves of keys that were retired before `before` (ms): no card that was encrypted to them can be
 * opened any more, wherever a copy lies. Returns how many.
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
