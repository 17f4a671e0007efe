// A token: its row as the store keeps it, and the text by which callers name it. What may happen to it is not said
// here (lifecycle.ts, decide.ts).

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
  /** As the caller gave it. */
  cardBrand: string | null
  /** Id of the BIN range that told about the issuer. */
  binRange: number | null
  analyticsToken: string | null
  /** A third party made the reuse token, and keeps the card; null for the vault's own. */
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
  /** As `reuse_token_type` says it. */
  type: string
  /** Theirs, 14 to 255 printable characters. */
  token: string
}

/** Which line of a batch gave which field of a row (batch-order.ts). */
export interface BatchMark {
  batchNo: number
  /** The batch made this row. */
  created: boolean
  /** The only writer, where `lines` is null; else the last one that counts by the policy. */
  line: number
  lines: LineOfField | null
}

/** Fields of a row that a batch keeps apart. */
export type FacetName = 'expiry' | 'name' | 'email' | 'sequence' | 'start' | 'brand' | 'tokenExpiry'

/**
 * The rank of the line that gave a field (of two, the higher one stands); `first` is the first line of the file that
 * stands for the row, `before` the rank of the expiry that the row had before the batch.
 */
export type LineOfField = { [name in FacetName | 'first' | 'before']?: number }

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const REUSE_TOKEN_LENGTH = 27
const NONE = 255

const HEX_VALUE = valuesOf('0123456789abcdef')
const CROCKFORD_VALUE = valuesOf(CROCKFORD)
// Ten bits at once: half the steps of a table of single letters.
const PAIRS = Array.from({ length: 1024 }, (_, bits) => `${CROCKFORD[bits >> 5]}${CROCKFORD[bits & 31]}`)
const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Letter → value, in either case; NONE elsewhere. */
function valuesOf(alphabet: string): Uint8Array {
  const values = new Uint8Array(128).fill(NONE)
  for (const [value, letter] of [...alphabet].entries()) {
    values[letter.charCodeAt(0)] = value
    values[letter.toLowerCase().charCodeAt(0)] = value
  }
  return values
}

/** What callers name the token by. */
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

/** The token's UUID, or undefined where the text is no reuse token. Letters count in either case; look-alikes don't. */
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
