// Packs and counts the outcomes of one chunk. Its receipt stores them as one JSON text: line, reference, outcome,
// reason, field, token id, what happened to the source reference, and what presented-card.ts keeps of the card. All
// else about the card is joined when the answer is built again. src/store/batch/batch-sums.ts adds up the chunks of a
// batch.
import { meaningOf } from '../errors.ts'
import { REFERENCE_OUTCOMES, type ReferenceOutcome } from '../token/on-file.ts'
import { shownReuseToken } from '../token/render.ts'
import type { TokenRow } from '../token/token.ts'
import { type Counts, noCounts, OUTCOMES, type Outcome, type RecordResult, tookEffect } from './outcome.ts'

/** The parts of a token that an outcome shows. */
type ShownToken = Pick<
  TokenRow,
  | 'tokenId'
  | 'thirdParty'
  | 'tokenType'
  | 'analyticsToken'
  | 'bin'
  | 'lastFour'
  | 'expiryMonth'
  | 'expiryYear'
  | 'brand'
  | 'status'
>

/** A decided record. */
export interface RecordOutcome {
  line: number
  reference: string | undefined
  outcome: Outcome
  /** A word of REASONS, or one that isn't known here. */
  reason: string | undefined
  field: string | undefined
  /** The token's row, if the record has a token. */
  token: ShownToken | undefined
  /** What happened to the record's source reference; undefined if it has none or took no effect. */
  claimed?: Claimed | undefined
  /** The card as the record gave it (`presentedText`); undefined unless `tookEffect(outcome)`. */
  presented?: string | undefined
  /** In a dry run: a DUPLICATE that would change its token. */
  changes?: true | undefined
}

export interface Claimed {
  outcome: ReferenceOutcome
  /** The token to which the reference belonged before. */
  previous: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'tokenType'> | undefined
}

/** An outcome read from its packed form: with token ids in place of rows. */
export interface UnpackedOutcome extends Omit<RecordOutcome, 'token' | 'claimed' | 'changes'> {
  tokenId: string | undefined
  claimed: { outcome: ReferenceOutcome; previous: string | undefined } | undefined
}

type Packed = [
  line: number,
  outcome: number,
  tokenId: string | 0,
  reference?: string | 0,
  // Null and not 0: the report of a batch reads it by SQL.
  reason?: string | null,
  field?: string,
  claimed?: number,
  previous?: string | null,
  presented?: string,
]

/** Stands in the place of the claim if a record has none but has the value behind it. */
const NO_CLAIM = -1

export function pack(records: readonly RecordOutcome[]): string {
  return JSON.stringify(records.map(packOne))
}

/** One record of that text. */
export function packedText(record: RecordOutcome): string {
  return JSON.stringify(packOne(record))
}

function packOne(record: RecordOutcome): Packed {
  const { line, outcome, token, reference, reason, field, claimed, presented } = record
  const packed: Packed = [line, OUTCOMES.indexOf(outcome), token?.tokenId ?? 0]
  if (claimed || presented !== undefined) {
    packed.push(reference ?? 0, reason ?? null, field ?? '', ...packClaim(claimed))
    if (presented !== undefined) packed.push(presented)
  } else if (reason !== undefined) packed.push(reference ?? 0, reason, field ?? '')
  else if (reference !== undefined) packed.push(reference)
  return packed
}

function packClaim(claimed: Claimed | undefined): [claimed: number, previous: string | null] {
  if (!claimed) return [NO_CLAIM, null]
  return [REFERENCE_OUTCOMES.indexOf(claimed.outcome), claimed.previous?.tokenId ?? null]
}

export function unpack(text: string): UnpackedOutcome[] {
  return (JSON.parse(text) as Packed[]).map(unpackOne)
}

function unpackOne(packed: Packed): UnpackedOutcome {
  const [line, outcome, tokenId, reference, reason, field, claimedAs, previous, presented] = packed
  const claimed = claimedAs === undefined ? undefined : REFERENCE_OUTCOMES[claimedAs]
  return {
    line,
    outcome: OUTCOMES[outcome] ?? 'FAILED',
    tokenId: tokenId || undefined,
    reference: reference || undefined,
    reason: reason || undefined,
    field: field || undefined,
    claimed: claimed && { outcome: claimed, previous: previous ?? undefined },
    presented,
  }
}

/** The ids of all tokens that these outcomes name. */
export function tokensNamed(unpacked: readonly UnpackedOutcome[]): string[] {
  return [...new Set(unpacked.flatMap(({ tokenId, claimed }) => [tokenId ?? [], claimed?.previous ?? []].flat()))]
}

/** Adds the tokens to an outcome; a token that isn't among `tokens` is left out. */
export function joinTokens<Token extends ShownToken>(
  { tokenId, claimed, ...record }: UnpackedOutcome,
  tokens: ReadonlyMap<string, Token>,
): RecordOutcome & { token: Token | undefined } {
  const find = (id: string | undefined) => (id === undefined ? undefined : tokens.get(id))
  const joined = { ...record, token: find(tokenId) }
  return claimed ? { ...joined, claimed: { outcome: claimed.outcome, previous: find(claimed.previous) } } : joined
}

/** The outcome as the caller reads it. If the token is deleted, no details of its card are shown. */
export function toResult(record: RecordOutcome): RecordResult {
  const { line, reference, outcome, reason, field, token, claimed } = record
  const result: RecordResult = { line, outcome, code: codeOf(outcome, reason) }
  if (reference !== undefined) result.reference = reference
  if (reason !== undefined) result.reason = reason
  if (field !== undefined) result.field = field
  if (reason?.startsWith('scheme_')) result.failed_facet = 'scheme_token'
  if (outcome === 'FAILED') result.reversal_status = 'NONE'
  if (record.changes) result.changes = true
  if (claimed) result.reference_outcome = claimed.outcome
  const previous = claimed?.previous && shownReuseToken(claimed.previous)
  if (previous) result.previous_token = previous
  if (!token) return result
  const reuseToken = shownReuseToken(token)
  if (reuseToken) result.reuse_token = reuseToken
  if (token.analyticsToken !== null) result.analytics_token = token.analyticsToken
  if (token.bin !== null) result.bin = token.bin
  if (token.lastFour !== null) result.last_four = token.lastFour
  if (token.expiryMonth !== null) result.expiry_month = token.expiryMonth
  if (token.expiryYear !== null) result.expiry_year = token.expiryYear
  if (token.brand !== null) result.brand = token.brand
  if (token.status !== 'ACTIVE') result.token_status = token.status
  return result
}

/** The outcome for a repeated answer, with its tokens as they are now. */
export function toResultAgain(record: UnpackedOutcome, tokens: ReadonlyMap<string, ShownToken>): RecordResult {
  const joined = joinTokens(record, tokens)
  return { ...toResult(joined), ...(joined.token ? { token_status: joined.token.status } : {}) }
}

function codeOf(outcome: Outcome, reason: string | undefined): number {
  if (tookEffect(outcome)) return 200
  return outcome === 'FAILED' ? 500 : meaningOf(reason ?? 'internal').code
}

/** Counts records by outcome. Outcomes that aren't known here are left out. */
export function count(records: readonly { outcome: string }[]): Counts {
  const counts = noCounts()
  for (const known of OUTCOMES) counts[known] = records.filter(({ outcome }) => outcome === known).length
  return counts
}

/** How many records ended with each reason, by outcome. */
export type ReasonCounts = Partial<Record<Outcome, Record<string, number>>>

export function countReasons(records: readonly { outcome: Outcome; reason?: string | undefined }[]): ReasonCounts {
  const counts: ReasonCounts = {}
  for (const { outcome, reason } of records) if (reason !== undefined) addReason(counts, outcome, reason, 1)
  return counts
}

export function addReason<Of extends string>(
  counts: Partial<Record<Of, Record<string, number>>>,
  outcome: Of,
  reason: string,
  n: number,
): void {
  const ofOutcome = counts[outcome] ?? {}
  ofOutcome[reason] = (ofOutcome[reason] ?? 0) + n
  counts[outcome] = ofOutcome
}
