// Which wall display a cookie is for. The cookie's value is in the display's link, and the store has only its hash. It only reads.
import type { Db } from '../../pool.ts'

/** A display that isn't revoked and hasn't ended. */
export interface LiveDisplay {
  linkHash: Buffer
  /** Null: the whole installation. */
  entities: string[] | null
  /** ms since the epoch. */
  expiresAt: number
}

const COLUMNS = `link_hash as "linkHash", entities, expires_at as "expiresAt"`
const LIVE = 'revoked_at is null and expires_at > now()'

/** The live display with this hash (SHA-256 of the cookie's value). */
export async function find(db: Db, linkHash: Buffer): Promise<LiveDisplay | undefined> {
  const { rows } = await db.query<LiveDisplay>({
    name: 'display-find',
    text: `select ${COLUMNS}
from tokenmill.display
where link_hash = $1 and ${LIVE}`,
    values: [linkHash],
  })
  return rows[0]
}

/** Which of these displays are live. */
export async function listLive(db: Db, linkHashes: readonly Buffer[]): Promise<LiveDisplay[]> {
  const { rows } = await db.query<LiveDisplay>({
    name: 'displays-live',
    text: `select ${COLUMNS}
from tokenmill.display
where link_hash = any($1::bytea[]) and ${LIVE}`,
    values: [linkHashes],
  })
  return rows
}
