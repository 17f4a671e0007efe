// Tokens as the reader role may see them: what may be shown of a card, and no column by which a card could be found.
// Columns that the role may not select are null here; tokens.ts reads whole rows.
import type { TokenRow } from '../../token/token.ts'
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'
import { thirdPartyOf } from './tokens.ts'

interface Row {
  token_id: string
  token_scope: string
  status: TokenRow['status']
  suspended_reason: TokenRow['suspendedReason']
  token_type: TokenRow['tokenType']
  bin: string | null
  last_four: string | null
  expiry_month: number | null
  expiry_year: number | null
  card_holder_name: string | null
  card_holder_email: string | null
  brand: string | null
  card_brand: string | null
  bin_range: number | null
  analytics_token: string | null
  third_party_type: string | null
  third_party_token: string | null
  token_expiry_date: string | null
  created_at: number
  updated_at: number
  version: number
  last_receipt: string | null
}

const COLUMNS = `token_id, token_scope, status, suspended_reason, token_type, bin, last_four, expiry_month, expiry_year,
card_holder_name, card_holder_email, brand, card_brand, bin_range, analytics_token, third_party_type, third_party_token, token_expiry_date,
created_at, updated_at, version, last_receipt`

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
    text: `select ${COLUMNS} from tokenmill.token where token_id = $1`,
    values: [tokenId],
  })
  const row = rows[0]
  return row && tokenOf(row)
}

/** Tokens by id, also deleted ones; missing ones are left out. */
export async function findByIds(db: Db, tokenIds: readonly string[]): Promise<TokenRow[]> {
  if (tokenIds.length === 0) return []
  const { rows } = await db.query<Row>({
    name: 'shown-tokens-find',
    text: `select ${COLUMNS} from unnest($1::uuid[]) as wanted(id)
cross join lateral (select ${COLUMNS} from tokenmill.token where token_id = wanted.id limit 1) as found`,
    values: [plains(tokenIds)],
  })
  return rows.map(tokenOf)
}

/** Live tokens of third parties whose value is `name`. */
export async function findByThirdParty(db: Db, name: string): Promise<TokenRow[]> {
  const { rows } = await db.query<Row>({
    name: 'shown-tokens-by-third-party',
    text: `select found.* from tokenmill.scheme_token as s
cross join lateral (select ${COLUMNS} from tokenmill.token where token_id = s.token_id and status <> 'DELETED' limit 1) as found
where s.third_party and s.state = 'ACTIVE' and s.reference = $1`,
    values: [name],
  })
  return rows.map(tokenOf)
}

function tokenOf(row: Row): TokenRow {
  return {
    ...HIDDEN,
    tokenId: row.token_id,
    tokenScope: row.token_scope,
    status: row.status,
    suspendedReason: row.suspended_reason,
    tokenType: row.token_type,
    bin: row.bin,
    lastFour: row.last_four,
    expiryMonth: row.expiry_month,
    expiryYear: row.expiry_year,
    cardHolderName: row.card_holder_name,
    cardHolderEmail: row.card_holder_email,
    brand: row.brand,
    cardBrand: row.card_brand,
    binRange: row.bin_range,
    analyticsToken: row.analytics_token,
    thirdParty: thirdPartyOf(row),
    tokenExpiryDate: row.token_expiry_date,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
    lastReceipt: row.last_receipt,
  }
}
