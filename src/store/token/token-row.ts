// A token's row as the store holds it, and its columns, for tokens.ts. No statement is sent from here.
import type { BatchMark, GivenAt, ThirdPartyName, TokenRow } from '../../token/token.ts'
import { type Column, plains } from '../columns.ts'

/** A token as it is stored: the fields that the rules use, and those that only the store needs. */
export interface StoredToken extends TokenRow {
  /** The version of the key that sealed its PAN. */
  sealVersion: number | null
  /** The fingerprints that the stored row had when it was read, even if `cards` has changed since; none for a new token. */
  storedCards?: readonly string[] | undefined
}

/** The members of a token's row that decide which fingerprints it gains and loses. */
export type CardsOfRow = Pick<StoredToken, 'tokenId' | 'cards' | 'storedCards' | 'link'>

export interface Row {
  token_id: string
  token_scope: string
  status: TokenRow['status']
  suspended_reason: TokenRow['suspendedReason']
  token_type: TokenRow['tokenType']
  /** Null of a deleted token. */
  cards: string[] | null
  sealed: Buffer | null
  seal_version: number | null
  bin: string | null
  last_four: string | null
  expiry_month: number | null
  expiry_year: number | null
  card_holder_name: string | null
  card_holder_email: string | null
  card_sequence: string | null
  start_month: number | null
  start_year: number | null
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
  batch_no: number | null
  batch_created: boolean | null
  batch_line: number | null
  batch_lines: BatchMark['lines']
  given_at: GivenAt | null
}

const column = (
  name: keyof Row,
  type: string,
  text: Column<StoredToken>['text'],
  plain = true,
): Column<StoredToken> => ({ name, type, text, plain })
const flag = (value: boolean | undefined) => (value === undefined ? null : value ? 't' : 'f')
// The rows of a chunk have the same time, and to format it for each row would cost time.
let lastMoment = { ms: 0, text: new Date(0).toISOString() }
function moment(ms: number): string {
  if (lastMoment.ms !== ms) lastMoment = { ms, text: new Date(ms).toISOString() }
  return lastMoment.text
}
const jsonOf = (value: object | null | undefined) => (value ? JSON.stringify(value) : null)
const binary = (value: Buffer | null) => (value === null ? null : `\\x${value.toString('hex')}`)

export const COLUMNS: readonly Column<StoredToken>[] = [
  column('token_id', 'uuid', t => t.tokenId),
  column('token_scope', 'uuid', t => t.tokenScope),
  column('status', 'text', t => t.status),
  column('suspended_reason', 'text', t => t.suspendedReason),
  column('token_type', 'text', t => t.tokenType),
  { ...column('cards', 'text', t => plains(t.cards), false), as: 'uuid[]' },
  column('sealed', 'bytea', t => binary(t.sealed), false),
  column('seal_version', 'smallint', t => t.sealVersion),
  column('bin', 'text', t => t.bin),
  column('last_four', 'text', t => t.lastFour),
  column('expiry_month', 'smallint', t => t.expiryMonth),
  column('expiry_year', 'smallint', t => t.expiryYear),
  column('card_holder_name', 'text', t => t.cardHolderName, false),
  column('card_holder_email', 'text', t => t.cardHolderEmail, false),
  column('card_sequence', 'text', t => t.cardSequence, false),
  column('start_month', 'smallint', t => t.startMonth),
  column('start_year', 'smallint', t => t.startYear),
  column('brand', 'text', t => t.brand),
  column('card_brand', 'text', t => t.cardBrand),
  column('bin_range', 'integer', t => t.binRange),
  column('analytics_token', 'text', t => t.analyticsToken),
  column('third_party_type', 'text', t => t.thirdParty?.type ?? null),
  column('third_party_token', 'text', t => t.thirdParty?.token ?? null, false),
  column('token_expiry_date', 'date', t => t.tokenExpiryDate),
  column('created_at', 'timestamptz', t => moment(t.createdAt), false),
  column('updated_at', 'timestamptz', t => moment(t.updatedAt), false),
  column('version', 'integer', t => t.version),
  column('last_receipt', 'uuid', t => t.lastReceipt),
  column('batch_no', 'bigint', t => t.mark?.batchNo ?? null),
  column('batch_created', 'boolean', t => flag(t.mark?.created)),
  column('batch_line', 'integer', t => t.mark?.line ?? null),
  column('batch_lines', 'jsonb', t => jsonOf(t.mark?.lines), false),
  column('given_at', 'jsonb', t => jsonOf(t.givenAt), false),
]
export const NAMES = COLUMNS.map(({ name }) => name).join(', ')

/** The third party's name for a token, from the columns of its row. */
export function thirdPartyOf(row: Pick<Row, 'third_party_type' | 'third_party_token'>): ThirdPartyName | null {
  const { third_party_type: type, third_party_token: token } = row
  return type === null || token === null ? null : { type, token }
}

export function tokenOf(row: Row): StoredToken {
  const cards = row.cards ?? []
  return {
    tokenId: row.token_id,
    tokenScope: row.token_scope,
    status: row.status,
    suspendedReason: row.suspended_reason,
    tokenType: row.token_type,
    cards,
    storedCards: cards,
    sealed: row.sealed,
    sealVersion: row.seal_version,
    bin: row.bin,
    lastFour: row.last_four,
    expiryMonth: row.expiry_month,
    expiryYear: row.expiry_year,
    cardHolderName: row.card_holder_name,
    cardHolderEmail: row.card_holder_email,
    cardSequence: row.card_sequence,
    startMonth: row.start_month,
    startYear: row.start_year,
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
    mark:
      row.batch_no === null
        ? null
        : {
            batchNo: row.batch_no,
            created: row.batch_created === true,
            line: row.batch_line ?? 0,
            lines: row.batch_lines,
          },
    givenAt: row.given_at,
  }
}
