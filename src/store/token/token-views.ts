// Tokens as the reader role may see them: what may be shown of a card, and no column by which a card could be found.
// Columns that the role may not select are null here; tokens.ts reads whole rows.
import type { TokenRow } from '../../token/token.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'
import { type ThirdPartyColumns, thirdPartyOf } from './tokens.ts'

type Row = Omit<TokenRow, keyof typeof HIDDEN | 'thirdParty'> & ThirdPartyColumns

const COLUMNS = `
  token_id as "tokenId",
  token_scope as "tokenScope",
  status,
  suspended_reason as "suspendedReason",
  token_type as "tokenType",
  bin,
  last_four as "lastFour",
  expiry_month as "expiryMonth",
  expiry_year as "expiryYear",
  card_holder_name as "cardHolderName",
  card_holder_email as "cardHolderEmail",
  brand,
  card_brand as "cardBrand",
  bin_range as "binRange",
  analytics_token as "analyticsToken",
  third_party_type as "thirdPartyType",
  third_party_token as "thirdPartyToken",
  token_expiry_date as "tokenExpiryDate",
  created_at as "createdAt",
  updated_at as "updatedAt",
  version,
  last_receipt as "lastReceipt"`

const HIDDEN = {
  cards: [],
  sealed: null,
  cardSequence: null,
  startMonth: null,
  startYear: null,
  mark: null,
  givenAt: null,
} as const

/** A token by its id (a UUID), also a deleted one. */
export async function find(db: Db, tokenId: string): Promise<TokenRow | undefined> {
  const { rows } = await db.query<Row>({
    name: 'shown-token-find',
    text: `select ${COLUMNS}
from tokenmill.token
where token_id = $1`,
    values: [tokenId],
  })
  return rows[0] && tokenOf(rows[0])
}

/** Tokens by id, also deleted ones; missing ones are left out. */
export async function findByIds(db: Db, tokenIds: readonly string[]): Promise<TokenRow[]> {
  if (tokenIds.length === 0) return []
  const { rows } = await db.query<Row>({
    name: 'shown-tokens-find',
    text: `select found.*
from unnest($1::uuid[]) as wanted(id)
cross join lateral (
  select ${COLUMNS}
  from tokenmill.token
  where token_id = wanted.id
  limit 1
) as found`,
    values: [plains(tokenIds)],
  })
  return rows.map(tokenOf)
}

function tokenOf(row: Row): TokenRow {
  return { ...row, ...HIDDEN, thirdParty: thirdPartyOf(row) }
}
