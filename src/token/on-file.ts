// Owners of cards: the data that is kept for a card for each owner, and the rules that change it. An owner is a
// customer in one account at a provider, who gave the card under an id of that provider. A token can have any number of
// owners. The rules are pure; nothing is looked up or saved here.
import { giverAt, isLater } from './newest.ts'
import type { Giver } from './token.ts'

/**
 * The owner of a card: the provider, its account, and the ids of customer and card there. The combination is unique
 * within a token scope. A text is empty if the provider has no such id.
 */
export interface OwnerId {
  tokenScope: string
  provider: string
  providerAccount: string
  customerId: string
  cardId: string
}

export const AGREEMENTS = ['RECURRING', 'INSTALMENT', 'UNSCHEDULED'] as const
export const AGREED_BY = ['ONLINE', 'MAIL', 'TELEPHONE', 'IN_PERSON'] as const

/**
 * Data of the card's source that must be kept with the card, under the names of requests and answers. A member that the
 * source didn't give is undefined.
 */
export interface OnFile {
  /** The name as it was given, of any length. */
  cardholder_name?: string | undefined
  /**
   * `network_transaction_ids`: all network transaction ids (NTI), oldest first. `network_transaction_id`: the one in
   * use.
   */
  network_transaction_ids?: readonly string[] | undefined
  network_transaction_id?: string | undefined
  /** Mastercard's transaction link id (TLID); upper and lower case differ. */
  transaction_link_id?: string | undefined
  /** The amount of the first authorisation, in minor units. */
  first_amount?: number | undefined
  first_currency?: string | undefined
  /** YYYY-MM-DD. */
  first_date?: string | undefined
  agreement?: (typeof AGREEMENTS)[number] | undefined
  agreed_by?: (typeof AGREED_BY)[number] | undefined
  /** YYYY-MM-DD. */
  agreed_on?: string | undefined
  /** This is the customer's default card. */
  is_default?: boolean | undefined
  /** Stored only in a scope that was made with `--keep-billing`. */
  billing_address?: Record<string, string | undefined> | undefined
}

/** A source reference: it says that an owner has a card on file at a token. */
export interface SourceReference extends OwnerId {
  tokenId: string
  onFile: OnFile
  /** Grows by one with each change. */
  version: number
  /** ms since the epoch. */
  createdAt: number
  updatedAt: number
  /** The receipt of the last job that changed the reference. */
  lastReceipt: string
  /** The last batch that changed the reference, and the line of its file; null for a single job. */
  mark: { batchNo: number; line: number } | null
  /** The giver of the card's link; null until a batch with `newest` writes the reference. */
  givenAt: Giver | null
  /** The reference before the last single job changed it; a reversal restores it. */
  before: Pick<SourceReference, 'tokenId' | 'onFile' | 'lastReceipt' | 'mark' | 'givenAt'> | null
}

export const REFERENCE_OUTCOMES = ['ADDED', 'CHANGED', 'MOVED', 'UNCHANGED', 'OLDER'] as const
export type ReferenceOutcome = (typeof REFERENCE_OUTCOMES)[number]

/** The member `on_file` of a job or a record, and what decides how it counts. */
export interface Claim {
  owner: OwnerId
  onFile: OnFile
}

export interface ClaimContext {
  /** The token of the claim's card. */
  tokenId: string
  receiptId: string
  /** ms since the epoch. */
  now: number
  /** Undefined for a single job. */
  mark: { batchNo: number; line: number } | undefined
  /** The numbers of other batches of the same file. */
  former?: ReadonlySet<number> | undefined
  /** If set, the token already belonged to the owner, and is now linked to the claim's card. */
  relinked?: boolean | undefined
  /** Default: the time `now`. */
  giver?: Giver | undefined
  /** If set, the claim counts only if no later giver has given the owner a card. */
  newest?: boolean | undefined
  /** If set, a later giver has linked the owner's token to another number. */
  outdated?: boolean | undefined
}

export interface JudgedClaim {
  outcome: ReferenceOutcome
  /**
   * The row to write; undefined if nothing is written. A confirmation is written, too, so that no earlier line of the
   * batch and no reversal of an earlier job undoes it.
   */
  row: SourceReference | undefined
  /** The token that the owner had under this id before, if it was another one. */
  previousToken: string | undefined
}

/**
 * Whether the stored reference comes from a later claim. With `newest` the times decide, else the lines of one file, in this
 * batch or in an earlier one; without either no claim is older.
 */
export function isOlderClaim(
  stored: SourceReference,
  {
    mark,
    newest,
    now,
    giver = giverAt(now),
    former,
  }: Pick<ClaimContext, 'mark' | 'newest' | 'now' | 'giver' | 'former'>,
): boolean {
  if (newest) return isLater(stored.givenAt ?? giverAt(stored.updatedAt), giver)
  if (!mark || !stored.mark) return false
  const { batchNo, line } = stored.mark
  return (batchNo === mark.batchNo || former?.has(batchNo) === true) && mark.line < line
}

/** Whether this line of the file has written the reference, in an earlier batch. The mark then says so as well as a new one. */
function isSameLine(stored: SourceReference, { mark, former, newest }: ClaimContext): boolean {
  if (newest || !mark || !stored.mark) return false
  return former?.has(stored.mark.batchNo) === true && stored.mark.line === mark.line
}

/**
 * The reference of a single job after an older claim was compared with it. It keeps nothing to restore: if a reversal
 * took the job back, neither of the two claims would stand. Undefined if a batch wrote the reference last.
 */
function compared(stored: SourceReference, { receiptId, mark }: ClaimContext): SourceReference | undefined {
  if (!mark || stored.mark) return undefined
  return { ...stored, version: stored.version + 1, lastReceipt: receiptId, mark, before: null }
}

/**
 * Decides a claim. `stored`: the reference of its owner, as earlier records left it. If two lines of one batch claim
 * the same owner, the later line in the file wins, in whatever order they are worked; with `newest` the claim that was
 * given later wins.
 */
export function judgeClaim(
  stored: SourceReference | undefined,
  { owner, onFile }: Claim,
  at: ClaimContext,
): JudgedClaim {
  const { tokenId, receiptId, now, mark, relinked = false, newest = false, giver = giverAt(now) } = at
  if (!stored) {
    const row: SourceReference = {
      ...owner,
      tokenId,
      onFile: onlyGiven(onFile),
      version: 1,
      createdAt: now,
      updatedAt: now,
      lastReceipt: receiptId,
      mark: mark ?? null,
      givenAt: newest ? giver : null,
      before: null,
    }
    return { outcome: 'ADDED', row, previousToken: undefined }
  }
  if (at.outdated || isOlderClaim(stored, at)) {
    return { outcome: 'OLDER', row: newest ? compared(stored, at) : undefined, previousToken: undefined }
  }
  const merged = merge(stored.onFile, onFile)
  const isMoved = stored.tokenId !== tokenId
  const isKept = !isMoved && !relinked && isSame(merged, stored.onFile)
  if (isKept && isSameLine(stored, at)) return { outcome: 'UNCHANGED', row: undefined, previousToken: undefined }
  const { tokenId: formerToken, onFile: formerOnFile, lastReceipt, mark: formerMark, givenAt } = stored
  const row = {
    ...stored,
    tokenId,
    onFile: merged,
    version: stored.version + 1,
    lastReceipt: receiptId,
    mark: mark ?? null,
    updatedAt: isKept ? stored.updatedAt : now,
    givenAt: newest || givenAt ? giver : null,
    // A batch isn't reversed, so nothing is kept to restore.
    before: mark ? null : { tokenId: formerToken, onFile: formerOnFile, lastReceipt, mark: formerMark, givenAt },
  }
  const outcome = isMoved ? 'MOVED' : isKept ? 'UNCHANGED' : 'CHANGED'
  return { outcome, row, previousToken: isMoved ? formerToken : undefined }
}

/**
 * The result of the single job that was the last to write this row, for a repeated answer; undefined if the row doesn't
 * say it.
 */
export function toldAgain({ version, tokenId, onFile, before }: SourceReference): Omit<JudgedClaim, 'row'> | undefined {
  if (version === 1) return { outcome: 'ADDED', previousToken: undefined }
  if (!before) return undefined
  if (before.tokenId !== tokenId) return { outcome: 'MOVED', previousToken: before.tokenId }
  return { outcome: isSame(before.onFile, onFile) ? 'UNCHANGED' : 'CHANGED', previousToken: undefined }
}

interface TakingBack {
  reversalId: string
  /** ms since the epoch. */
  now: number
  /** ms since the epoch. A job that changed or moved a reference by then isn't taken back. */
  since: number
  isLive: (tokenId: string) => boolean
}

/**
 * The row after a reversal of the single job that was the last to write it. `removed` if that job added the reference,
 * or if the token to which it belonged before isn't live any more. Undefined if the row stays as it is: there is
 * nothing to restore, or the job was too long ago, so that its former token may have another card by now.
 */
export function takeBack<Row extends SourceReference>(
  row: Row,
  { reversalId, now, since, isLive }: TakingBack,
): Row | 'removed' | undefined {
  if (row.version === 1) return 'removed'
  const { before } = row
  if (!before || row.updatedAt <= since) return undefined
  if (before.tokenId !== row.tokenId && !isLive(before.tokenId)) return 'removed'
  const { tokenId, onFile, mark, givenAt } = before
  const next = { version: row.version + 1, updatedAt: now, lastReceipt: reversalId, before: null }
  return { ...row, tokenId, onFile, mark, givenAt, ...next }
}

const IDS_MAX = 50

/** The data of a new reference. */
function onlyGiven(given: OnFile): OnFile {
  const hasIds = given.network_transaction_ids !== undefined || given.network_transaction_id !== undefined
  return hasIds ? merge({}, given) : given
}

/**
 * Merges what a request gives with what is stored: given members replace stored ones, and network transaction ids are
 * added to the known ones.
 */
function merge(former: OnFile, given: OnFile): OnFile {
  const { network_transaction_ids: listed = [], network_transaction_id: used } = given
  const known = former.network_transaction_ids ?? []
  const last = listed.at(-1)
  // A list whose last id is known was read before, so it says nothing about the id in use.
  const isRepeated = last !== undefined && known.includes(last)
  const inUse = used ?? (isRepeated ? (former.network_transaction_id ?? last) : last)
  const ids = [...new Set([...known, ...listed, ...(used === undefined ? [] : [used])])]
  return {
    ...former,
    ...given,
    ...(ids.length > 0 ? { network_transaction_ids: withinMax(ids, inUse ?? former.network_transaction_id) } : {}),
    ...(inUse === undefined ? {} : { network_transaction_id: inUse }),
  }
}

/**
 * The first id is that of the first payment, to which later payments refer. If there are too many ids, the first id,
 * the id in use and the latest others are kept.
 */
function withinMax(ids: readonly string[], inUse: string | undefined): readonly string[] {
  const [first, ...others] = ids
  if (ids.length <= IDS_MAX || first === undefined) return ids
  const latest = [first, ...others.slice(1 - IDS_MAX)]
  if (inUse === undefined || latest.includes(inUse)) return latest
  return [first, inUse, ...others.slice(2 - IDS_MAX)]
}

function isSame(one: OnFile, other: OnFile): boolean {
  return canonical(one) === canonical(other)
}

/** The value as a text with sorted members, because the store doesn't keep their order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}

/** Whether the id has the form that Mastercard publishes; ids of another form are kept and counted. */
export function isUsualLinkId(id: string): boolean {
  return /^[A-Za-z0-9_-]{22}$/.test(id)
}

/** A text that identifies an owner; different owners have different texts. */
export function ownerKey({ tokenScope, provider, providerAccount, customerId, cardId }: OwnerId): string {
  return JSON.stringify([tokenScope, provider, providerAccount, customerId, cardId])
}
