// A token's row as the store holds it, and its columns, for tokens.ts. No statement is sent from here.
import type { BatchMark, ThirdPartyName, TokenRow } from '../../token/token.ts'
import { asMembers, type Column, plains } from '../columns.ts'

/** A token as it is stored: the fields that the rules use, and those that only the store needs. */
export interface StoredToken extends TokenRow {
  /** The version of the key that sealed its PAN. */
  sealVersion: number | null
  /** The fingerprints that the stored row had when it was read, even if `cards` has changed since; none for a new token. */
  storedCards?: readonly string[] | undefined
}

/** The members of a token's row that decide which fingerprints it gains and loses. */
export type CardsOfRow = Pick<StoredToken, 'tokenId' | 'cards' | 'storedCards' | 'link'>

/** The columns of a third party's name for a token. */
export interface ThirdPartyColumns {
  thirdPartyType: string | null
  thirdPartyToken: string | null
}

/** A token's row as it is selected. */
export interface Row extends Omit<StoredToken, 'cards' | 'storedCards' | 'thirdParty' | 'mark'>, ThirdPartyColumns {
  /** Null of a deleted token. */
  cards: string[] | null
  batchNo: number | null
  batchCreated: boolean | null
  batchLine: number | null
  batchLines: BatchMark['lines']
}

const column = (name: string, type: string, text: Column<StoredToken>['text'], plain = true): Column<StoredToken> => ({
  name,
  type,
  text,
  plain,
})
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
/** The columns of a `Row`. */
export const SELECTED = asMembers(COLUMNS.map(({ name }) => name))

/** The third party's name for a token, from the columns of its row. */
export function thirdPartyOf({
  thirdPartyType: type,
  thirdPartyToken: token,
}: ThirdPartyColumns): ThirdPartyName | null {
  return type === null || token === null ? null : { type, token }
}

/** Member by member: chunks read many rows, and to copy a row and leave members out takes ten times as long. */
export function tokenOf(row: Row): StoredToken {
  const cards = row.cards ?? []
  return {
    tokenId: row.tokenId,
    tokenScope: row.tokenScope,
    status: row.status,
    suspendedReason: row.suspendedReason,
    tokenType: row.tokenType,
    cards,
    storedCards: cards,
    sealed: row.sealed,
    sealVersion: row.sealVersion,
    bin: row.bin,
    lastFour: row.lastFour,
    expiryMonth: row.expiryMonth,
    expiryYear: row.expiryYear,
    cardHolderName: row.cardHolderName,
    cardHolderEmail: row.cardHolderEmail,
    cardSequence: row.cardSequence,
    startMonth: row.startMonth,
    startYear: row.startYear,
    brand: row.brand,
    cardBrand: row.cardBrand,
    binRange: row.binRange,
    analyticsToken: row.analyticsToken,
    thirdParty: thirdPartyOf(row),
    tokenExpiryDate: row.tokenExpiryDate,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    version: row.version,
    lastReceipt: row.lastReceipt,
    mark:
      row.batchNo === null
        ? null
        : {
            batchNo: row.batchNo,
            created: row.batchCreated === true,
            line: row.batchLine ?? 0,
            lines: row.batchLines,
          },
    givenAt: row.givenAt,
  }
}
