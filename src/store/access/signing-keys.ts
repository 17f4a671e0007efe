// The installation's signing keys for results: public halves, which anybody may read, and private halves, wrapped by
// the key-encryption key (KEK).
import type { Algorithm } from '../../job/envelope/signature.ts'
import type { Db } from '../pool.ts'

export interface PublicSigningKey {
  kid: string
  alg: Algorithm
  publicJwk: Record<string, unknown>
  /** ms since the epoch. */
  createdAt: number
}

export interface SigningKeyRecord extends PublicSigningKey {
  wrappedPrivate: Buffer
}

interface PublicRow {
  kid: string
  alg: Algorithm
  public_jwk: Record<string, unknown>
  created_at: number
}

const COLUMNS = 'kid, alg, public_jwk, created_at'

function publicOf(row: PublicRow): PublicSigningKey {
  return { kid: row.kid, alg: row.alg, publicJwk: row.public_jwk, createdAt: row.created_at }
}

/**
 * The public halves of all signing keys, newest first, so that results signed by an older key can still be verified.
 */
export async function findPublic(db: Db): Promise<PublicSigningKey[]> {
  const { rows } = await db.query<PublicRow>({
    text: `select ${COLUMNS} from tokenmill.signing_key order by created_at desc, kid`,
  })
  return rows.map(publicOf)
}

/** The newest key, which signs results now. */
export async function findNewest(db: Db): Promise<SigningKeyRecord | undefined> {
  const { rows } = await db.query<PublicRow & { wrapped_private: Buffer }>({
    text: `select ${COLUMNS}, wrapped_private from tokenmill.signing_key order by created_at desc, kid limit 1`,
  })
  const row = rows[0]
  return row && { ...publicOf(row), wrappedPrivate: row.wrapped_private }
}

export async function insert(db: Db, key: Omit<SigningKeyRecord, 'createdAt'>): Promise<void> {
  await db.query({
    text: 'insert into tokenmill.signing_key (kid, alg, public_jwk, wrapped_private) values ($1, $2, $3::jsonb, $4)',
    values: [key.kid, key.alg, JSON.stringify(key.publicJwk), key.wrappedPrivate],
  })
}
