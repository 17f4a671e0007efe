// Wall displays of the console: each a link with a value that shows figures of the page Now. The store holds a hash of the value
// alone. Commands write here; src/store/console/installation/displays.ts reads for the console.
import type { Db } from '../pool.ts'

/** A display lasts no longer, because no browser keeps a cookie for longer. In days. */
export const DISPLAY_DAYS_MAX = 400

export interface Display {
  displayId: string
  name: string
  /** Null: the whole installation. */
  entities: string[] | null
  madeBy: string
  /** ms since the epoch, as are all times here. */
  createdAt: number
  expiresAt: number
  revokedAt: number | null
}

const COLUMNS = `display_id as "displayId", name, entities, made_by as "madeBy", created_at as "createdAt",
expires_at as "expiresAt", revoked_at as "revokedAt"`

/**
 * Inserts a display that lasts `DISPLAY_DAYS_MAX` days, and returns its end. `linkHash`: SHA-256 of the value in its link, 32 bytes.
 * Undefined if a display that isn't revoked has this name.
 */
export async function insert(
  db: Db,
  {
    displayId,
    name,
    entities,
    madeBy,
    linkHash,
  }: Pick<Display, 'displayId' | 'name' | 'entities' | 'madeBy'> & {
    linkHash: Buffer
  },
): Promise<number | undefined> {
  const { rows } = await db.query<{ expiresAt: number }>({
    text: `insert into tokenmill.display (
  display_id,
  name,
  entities,
  made_by,
  link_hash,
  expires_at
)
values (
  $1,
  $2,
  $3::uuid[],
  $4,
  $5,
  now() + interval '${DISPLAY_DAYS_MAX} days'
)
on conflict (name)
where revoked_at is null do nothing
returning expires_at as "expiresAt"`,
    values: [displayId, name, entities, madeBy, linkHash],
  })
  return rows[0]?.expiresAt
}

/** Oldest first, revoked ones and those included that have ended. */
export async function list(db: Db): Promise<Display[]> {
  const { rows } = await db.query<Display>({
    text: `select ${COLUMNS}
from tokenmill.display
order by created_at, display_id`,
  })
  return rows
}

/** False if it was revoked before, or doesn't exist. */
export async function revoke(db: Db, displayId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.display
set revoked_at = now()
where display_id = $1 and revoked_at is null`,
    values: [displayId],
  })
  return count === 1
}
