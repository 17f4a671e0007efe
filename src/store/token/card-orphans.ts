// Lists the tokens that would lose their card if a version of the fingerprint key is retired, for the operator to see first.
import { type Db, limitStatements } from '../pool.ts'

export interface Orphan {
  tokenId: string
  tokenScope: string
  tokenType: string
  bin: string | null
  lastFour: string | null
}

/** Up to `limit` tokens that are known under this version. It changes the limits of the transaction in which it is called. */
export async function list(db: Db, version: number, limit: number): Promise<Orphan[]> {
  await limitStatements(db, 0)
  await db.query({ text: 'set local enable_seqscan = on' })
  const { rows } = await db.query<Orphan>({
    text: `select found.*
from tokenmill.card as c
cross join lateral (
  select
    token_id as "tokenId",
    token_scope as "tokenScope",
    token_type as "tokenType",
    bin,
    last_four as "lastFour"
  from tokenmill.token
  where token_id = c.token_id
  limit 1
) as found
where c.version = $1
limit $2`,
    values: [version, limit],
  })
  return rows
}
