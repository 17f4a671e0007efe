// Finds jobs and tokens by the names that people know them by, for commands and the console. Each look-up reads a bounded number
// of rows by an index: a reference or a token may have millions of jobs, and most of them may be somebody else's.
import type { TokenRow } from '../../token/token.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

/** How many jobs of one name are looked at: at most so many, those of the newest weeks first. */
const LOOKED_MAX = 500
/** How many weeks back receipts are looked for. One week ahead is for a clock that is late. */
const WEEKS = 160

/** Jobs without a batch whose column `column` is $2. Each week is one partition, of which the others are not read. */
const findBy = (column: 'reference' | 'token_id', type: 'text' | 'uuid') => `select r.receipt_id as "receiptId"
from (
  select found.*
  from generate_series(-1, ${WEEKS}) as week
  cross join lateral (
    select receipt_id, entity_id, completed_at
    from tokenmill.receipt
    where ${column} = $2::${type} and batch_no is null and day >= date_trunc('week', now()::date)::date - 7 * week
      and day < date_trunc('week', now()::date)::date - 7 * week + 7
    limit ${LOOKED_MAX}
  ) as found
  limit ${LOOKED_MAX}
) as r
where $1::uuid[] is null or r.entity_id = any($1)
order by r.completed_at desc
limit $3`

/** Ids of receipts of single jobs with this reference, newest first. */
export async function findByReference(sight: Sight, db: Db, reference: string, limit: number): Promise<string[]> {
  const text = findBy('reference', 'text')
  const values = [entitiesOf(sight), reference, limit]
  const { rows } = await db.query<{ receiptId: string }>({ name: 'seen-by-reference', text, values })
  return rows.map(({ receiptId }) => receiptId)
}

/** Ids of receipts of single jobs that were about this token (a UUID), newest first. */
export async function findByToken(sight: Sight, db: Db, tokenId: string, limit: number): Promise<string[]> {
  const text = findBy('token_id', 'uuid')
  const values = [entitiesOf(sight), tokenId, limit]
  const { rows } = await db.query<{ receiptId: string }>({ name: 'seen-by-token', text, values })
  return rows.map(({ receiptId }) => receiptId)
}

export type SeenToken = Pick<TokenRow, 'tokenId' | 'tokenScope' | 'tokenType' | 'status' | 'suspendedReason'> &
  Pick<TokenRow, 'createdAt' | 'updatedAt' | 'lastReceipt'> & {
    /** Of a third party's token: whose. Its value isn't read. */
    thirdPartyType: string | null
  }

/** A token by its own id, if its scope is of an entity that the person sees. */
export async function findToken(sight: Sight, db: Db, tokenId: string): Promise<SeenToken | undefined> {
  const { rows } = await db.query<SeenToken>({
    name: 'seen-token',
    text: `select
  t.token_id as "tokenId",
  t.token_scope as "tokenScope",
  t.token_type as "tokenType",
  t.third_party_type as "thirdPartyType",
  t.status,
  t.suspended_reason as "suspendedReason",
  t.created_at as "createdAt",
  t.updated_at as "updatedAt",
  t.last_receipt as "lastReceipt"
from tokenmill.token as t
join tokenmill.scope as s on s.token_scope = t.token_scope
where t.token_id = $2 and ($1::uuid[] is null or s.entity_id = any($1))`,
    values: [entitiesOf(sight), tokenId],
  })
  return rows[0]
}
