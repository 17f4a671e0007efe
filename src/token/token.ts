// A token: its row as the store keeps it, and the reuse token by which callers name it. The rules are in lifecycle.ts
// and decide.ts.

export type TokenStatus = 'ACTIVE' | 'SUSPENDED' | 'DELETED'
export type TokenType = 'REUSE' | 'ANALYTICS' | 'REUSE_AND_ANALYTICS'
export type SuspendedReason = 'REQUEST' | 'EXPIRED' | 'CARD_EXPIRED'

export interface TokenRow {
  /** UUID version 7. */
  tokenId: string
  tokenScope: string
  status: TokenStatus
  suspendedReason: SuspendedReason | null
  tokenType: TokenType
  /** null once deleted. */
  fingerprint: Buffer | null
  /** The sealed PAN; null once deleted, and for ANALYTICS. */
  sealed: Buffer | null
  bin: string | null
  lastFour: string | null
  expiryMonth: number | null
  expiryYear: number | null
  cardHolderName: string | null
  cardHolderEmail: string | null
  cardSequence: string | null
  startMonth: number | null
  startYear: number | null
  /** The effective brand. */
  brand: string | null
  /** The brand that the caller stated. */
  cardBrand: string | null
  /** Id of the BIN range that the issuer data come from. */
  binRange: number | null
  analyticsToken: string | null
  /** Set where a third party made the reuse token and keeps the card; null for the vault's own tokens. */
  thirdParty: ThirdPartyName | null
  /** YYYY-MM-DD. */
  tokenExpiryDate: string | null
  /** ms since the epoch, as is `updatedAt`. */
  createdAt: number
  updatedAt: number
  version: number
  /** The receipt that last answered for this token. */
  lastReceipt: string | null
  /** The batch that last wrote this row; null after any other write. */
  mark: BatchMark | null
}

/** A reuse token that isn't the vault's own. */
export interface ThirdPartyName {
  /** A value of `reuse_token_type`. */
  type: string
  /** The third party's token, 14 to 255 printable characters. */
  token: string
}

/** Which line of a batch gave which field of a row (batch/order.ts). */
export interface BatchMark {
  batchNo: number
  /** The batch made this row. */
  created: boolean
  /** The only line that wrote the row, where `lines` is null; else the last line that counts by the policy. */
  line: number
  lines: LineOfField | null
}

/** The card fields of a row (card-fields.ts). */
export type CardFieldName = 'expiry' | 'name' | 'email' | 'sequence' | 'start' | 'brand' | 'tokenExpiry'

/**
 * The rank of the line that gave a field (the higher rank counts); `first` is the first line of the file for this row,
 * `before` the rank of the expiry date that the row had before the batch.
 */
export type LineOfField = { [name in CardFieldName | 'first' | 'before']?: number }

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const REUSE_TOKEN_LENGTH = 27
const NONE = 255

const HEX_VALUE = valuesOf('0123456789abcdef')
const CROCKFORD_VALUE = valuesOf(CROCKFORD)
// Ten bits at a time need half the steps of single letters.
const PAIRS = Array.from({ length: 1024 }, (_, bits) => `${CROCKFORD[bits >> 5]}${CROCKFORD[bits & 31]}`)
const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Letter → value, in upper and lower case; NONE for any other character. */
function valuesOf(alphabet: string): Uint8Array {
  const values = new Uint8Array(128).fill(NONE)
  for (const [value, letter] of [...alphabet].entries()) {
    values[letter.charCodeAt(0)] = value
    values[letter.toLowerCase().charCodeAt(0)] = value
  }
  return values
}

/** The name that callers use for the token. */
export function reuseTokenOf({ tokenId, thirdParty }: Pick<TokenRow, 'tokenId' | 'thirdParty'>): string {
  return thirdParty?.token ?? formatReuseToken(tokenId)
}

/** `t` and 26 upper-case Crockford base32 characters of the UUID's 128 bits. `uuid` is well-formed and lower-case. */
export function formatReuseToken(uuid: string): string {
  let text = 't'
  // 26 letters hold 130 bits: two zero bits come first.
  let bits = 0
  let held = 2
  for (let index = 0; index < 36; index++) {
    if (index === 8 || index === 13 || index === 18 || index === 23) continue
    bits = (bits << 4) | (HEX_VALUE[uuid.charCodeAt(index)] ?? 0)
    held += 4
    if (held < 10) continue
    held -= 10
    text += PAIRS[bits >> held]
    bits &= (1 << held) - 1
  }
  return text
}

/** The token's UUID; undefined where the text is no reuse token. Upper and lower case are equal; look-alike letters aren't accepted. */
export function parseReuseToken(text: string): string | undefined {
  if (text.length !== REUSE_TOKEN_LENGTH) return undefined
  if (text[0] !== 't' && text[0] !== 'T') return undefined
  let uuid = ''
  let bits = 0
  let held = -2
  for (let index = 1; index < REUSE_TOKEN_LENGTH; index++) {
    const value = CROCKFORD_VALUE[text.charCodeAt(index)] ?? NONE
    if (value === NONE || (index === 1 && value > 7)) return undefined
    bits = (bits << 5) | value
    held += 5
    if (held < 8) continue
    held -= 8
    uuid += BYTES[bits >> held]
    bits &= (1 << held) - 1
    if (uuid.length === 8 || uuid.length === 13 || uuid.length === 18 || uuid.length === 23) uuid += '-'
  }
  return uuid
}
