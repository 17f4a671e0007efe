// JWTs with which browsers begin an authentication. Each JWT is valid for one authentication and used once; a
// conditional update ensures that. The JWT itself isn't stored.
import type { IssuedJwt } from '../../three-ds/ports.ts'
import type { Db } from '../pool.ts'

export async function insert(
  db: Db,
  { jti, contractId, issuedAt }: Pick<IssuedJwt, 'jti' | 'contractId' | 'issuedAt'>,
): Promise<void> {
  await db.query({
    name: 'threeds-jwt-insert',
    text: `insert into tokenmill.threeds_jwt (jti, contract_id, issued_at)
values ($1, $2, $3)`,
    values: [jti, contractId, new Date(issuedAt)],
  })
}

export async function find(db: Db, jti: string): Promise<IssuedJwt | undefined> {
  const { rows } = await db.query<IssuedJwt>({
    name: 'threeds-jwt-find',
    text: `select
  jti,
  contract_id as "contractId",
  authentication_id as "authenticationId",
  issued_at as "issuedAt",
  used_at as "usedAt"
from tokenmill.threeds_jwt
where jti = $1`,
    values: [jti],
  })
  return rows[0]
}

/**
 * Records which authentication the JWT belongs to. While the JWT is unused, a later lookup that names it replaces an
 * earlier one.
 */
export async function bind(
  db: Db,
  {
    jti,
    contractId,
    authenticationId,
    since,
  }: { jti: string; contractId: string; authenticationId: string; since: number },
): Promise<boolean> {
  const { count } = await db.query({
    name: 'threeds-jwt-bind',
    text: `update tokenmill.threeds_jwt
set authentication_id = $3
where jti = $1 and contract_id = $2 and used_at is null and issued_at > $4`,
    values: [jti, contractId, authenticationId, new Date(since)],
  })
  return count === 1
}

/** Marks a JWT as used. False if it was used before or never issued. */
export async function use(db: Db, jti: string, usedAt: number): Promise<boolean> {
  const { count } = await db.query({
    name: 'threeds-jwt-use',
    text: `update tokenmill.threeds_jwt
set used_at = $2
where jti = $1 and used_at is null`,
    values: [jti, new Date(usedAt)],
  })
  return count === 1
}

/** Erases up to `limit` JWTs that were issued before `before` (ms). Returns how many. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.threeds_jwt
  where jti = any(array(
  select jti
  from tokenmill.threeds_jwt
  where issued_at < $1
  order by issued_at
  limit $2
))`,
    values: [new Date(before), limit],
  })
  return count
}
