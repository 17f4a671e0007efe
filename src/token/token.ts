// A token: its row as the store holds it, and the reuse token by which callers name it. The rules are in lifecycle.ts
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
  /** The fingerprints of its card: one per version of their key under which it is known. None once it is deleted. */
  cards: readonly string[]
  /** Set where a rule gave the row its `cards`: what the store must know to write them. */
  link?: Fingerprints | undefined
  /**
   * The sealed PAN; null until it is sealed, once the token is deleted, for ANALYTICS, and if a third party keeps the
   * card.
   */
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
  /** Set if a third party made the reuse token and keeps the card; null for the vault's own tokens. */
  thirdParty: ThirdPartyName | null
  /** YYYY-MM-DD. */
  tokenExpiryDate: string | null
  /** ms since the epoch, as is `updatedAt`. */
  createdAt: number
  updatedAt: number
  version: number
  /** The receipt of the last operation on this token. */
  lastReceipt: string | null
  /** The batch that last wrote this row; null if a single job has changed the row since. */
  mark: BatchMark | null
  /**
   * The givers of the row's fields; null until a batch with `newest` writes the row, or the row gets another number
   * (batch/newest.ts).
   */
  givenAt: GivenAt | null
}

/**
 * The fingerprints of one card within one scope, as UUIDs (the first 16 bytes of a keyed hash): one per version of
 * their key. Two cards have none in common.
 */
export interface Fingerprints {
  /** The fingerprints that the row of its token has from now on. Within a job the first one identifies the card. */
  kept: readonly string[]
  /** The key's version of each of `kept`. */
  versions: readonly number[]
  /** All under which its token may be found; `kept` come first. */
  known: readonly string[]
  /** The turn of the key in which they were made (`CardPhase`): in another turn they may not be written. */
  turn: string
}

/** Whether these are fingerprints of one card. */
export function isSameCard(one: readonly string[], other: readonly string[]): boolean {
  return one.some(print => other.includes(print))
}

/** A reuse token that a third party made. */
export interface ThirdPartyName {
  /** A value of `reuse_token_type`. */
  type: string
  /** The third party's token, 14 to 255 printable characters. */
  token: string
}

/** Which line of a batch wrote which field of a row (batch/order.ts). */
export interface BatchMark {
  batchNo: number
  /** This batch made the row. */
  created: boolean
  /**
   * If `lines` is null: the only line that wrote the row, and with `newest` the last line of the file that did; else the last
   * line that counts by the policy.
   */
  line: number
  lines: LineOfField | null
}

/** The card fields of a row (card-fields.ts). */
export type CardFieldName = 'expiry' | 'name' | 'email' | 'sequence' | 'start' | 'brand' | 'tokenExpiry'

/**
 * The rank of the line that wrote each field; the higher rank counts. `first`: the first line of the file for this row.
 * `before`: the rank of the row's expiry date before the batch.
 */
export type LineOfField = { [name in CardFieldName | 'first' | 'before']?: number }

/**
 * The giver of a value: when it was given (ms since the epoch), the beginning of the digest of its input ('' for
 * anything but a batch with source times), and the line of the input.
 */
export type Giver = readonly [time: number, input: string, line: number]

/** `number`: the link to a card that isn't the first. `status`: ACTIVE, or SUSPENDED and why. */
export type DatedName = CardFieldName | 'number' | 'status'

/** Nobody has given what has no entry. */
export type GivenAt = { readonly [name in DatedName]?: Giver }

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const REUSE_TOKEN_LENGTH = 27
const NONE = 255

const HEX_VALUE = valuesOf('0123456789abcdef')
const CROCKFORD_VALUE = valuesOf(CROCKFORD)
// Encoding ten bits at a time takes half the steps of encoding letter by letter.
const PAIRS = Array.from({ length: 1024 }, (_, bits) => `${CROCKFORD[bits >> 5]}${CROCKFORD[bits & 31]}`)
const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** A table from character code to value, for upper and lower case; NONE for any other character. */
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

/**
 * Formats a reuse token: `t` and 26 upper-case Crockford base32 characters of the UUID's 128 bits. `uuid` must be
 * well-formed and in lower case.
 */
export function formatReuseToken(uuid: string): string {
  let text = 't'
  // 26 characters hold 130 bits, so two zero bits come first.
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

const LETTERS = Buffer.from(`t${CROCKFORD}`, 'latin1')
const UUID_BYTES = 16

/** The reuse tokens of UUIDs, one after the other. `bytes`: those of the UUIDs; `places`: which of them, in this order. */
export function formatReuseTokens(bytes: Buffer, places: readonly number[]): string {
  const text = Buffer.allocUnsafe(places.length * REUSE_TOKEN_LENGTH)
  let end = 0
  for (const place of places) {
    text[end++] = LETTERS[0] ?? 0
    let bits = 0
    let held = 2
    for (let index = place * UUID_BYTES; index < (place + 1) * UUID_BYTES; index += 1) {
      bits = (bits << 8) | (bytes[index] ?? 0)
      for (held += 8; held >= 5; bits &= (1 << held) - 1) {
        held -= 5
        text[end++] = LETTERS[1 + (bits >> held)] ?? 0
      }
    }
  }
  return text.toString('latin1')
}

/**
 * The UUID of a reuse token; undefined if the text isn't one. Upper and lower case are the same; look-alike letters
 * (such as O for 0) aren't accepted.
 */
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
