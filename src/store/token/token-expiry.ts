// Finds tokens whose expiry date has passed, page by page along an index: a page costs the same however many tokens
// there are. It changes no token; jobs do that.
import type { TokenStatus } from '../../token/token.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface ExpiredToken {
  tokenId: string
  /** `YYYY-MM-DD`, the last day on which the token is valid. */
  tokenExpiryDate: string
  /** The entity of the token's scope. */
  entityId: string
}

/** The last token of the page before. */
export type Place = Pick<ExpiredToken, 'tokenExpiryDate' | 'tokenId'>

export interface ExpiredPage {
  /** The active tokens among those that were looked at. */
  tokens: ExpiredToken[]
  /** The last token that was looked at; undefined if there is none left. */
  last: Place | undefined
}

/**
 * The next `limit` tokens whose date is `lastDay` or earlier, in the order of date and id, after the place `after`. It also
 * reads tokens that a request has suspended: the index leaves the status out, so that a change of status doesn't write it.
 */
export async function findExpired(
  db: Db,
  lastDay: string,
  after: Place | undefined,
  limit: number,
): Promise<ExpiredPage> {
  const { rows } = await db.query<ExpiredToken & { status: TokenStatus }>({
    name: 'tokens-expired',
    text: `select
  t.token_id as "tokenId",
  t.token_expiry_date as "tokenExpiryDate",
  t.status,
  s.entity_id as "entityId"
from (
  select
    token_id,
    token_expiry_date,
    status,
    token_scope
  from tokenmill.token
  where token_expiry_date is not null and expiry_is_done is null and token_expiry_date <= $1::date
    and (token_expiry_date, token_id) > ($2::date, $3::uuid)
  order by token_expiry_date, token_id
  limit $4
) as t
cross join lateral (select entity_id from tokenmill.scope where token_scope = t.token_scope) as s
order by t.token_expiry_date, t.token_id`,
    values: [lastDay, after?.tokenExpiryDate ?? '-infinity', after?.tokenId ?? NOTHING, limit],
  })
  return { tokens: rows.filter(({ status }) => status === 'ACTIVE'), last: rows.at(-1) }
}

const NOTHING = '00000000-0000-0000-0000-000000000000'

/** The tokens of `tokenIds` that are still active and past their date. */
export async function stillExpired(db: Db, lastDay: string, tokenIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>({
    name: 'tokens-still-expired',
    text: `select found.token_id as id
from unnest($2::uuid[]) as wanted(id)
cross join lateral (
  select token_id
  from tokenmill.token
  where token_id = wanted.id and status = 'ACTIVE' and token_expiry_date <= $1::date
  limit 1
) as found`,
    values: [lastDay, plains(tokenIds)],
  })
  return new Set(rows.map(({ id }) => id))
}
