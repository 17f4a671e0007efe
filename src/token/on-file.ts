// What is kept of a card beside its token, and for whom: an owner is a customer at one account of a provider, who gave the
// card under the provider's id. Tokens have any number of owners. The rules are pure; nothing is looked up or saved here.

/** Who gave the card, and under which id: unique within a token scope. Empty texts where a provider has no such id. */
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
 * What must travel with the card, as its source gave it, under the names that requests and answers have for it. Members that
 * it didn't give are absent.
 */
export interface OnFile {
  /** The name as given, however long. */
  cardholder_name?: string | undefined
  /** All network transaction ids (NTI), oldest first, and the one in use. */
  network_transaction_ids?: readonly string[] | undefined
  network_transaction_id?: string | undefined
  /** Mastercard's transaction link id (TLID), whose case counts. */
  transaction_link_id?: string | undefined
  /** Of the first authorisation, in minor units. */
  first_amount?: number | undefined
  first_currency?: string | undefined
  /** YYYY-MM-DD. */
  first_date?: string | undefined
  agreement?: (typeof AGREEMENTS)[number] | undefined
  agreed_by?: (typeof AGREED_BY)[number] | undefined
  /** YYYY-MM-DD. */
  agreed_on?: string | undefined
  /** The customer's default card. */
  is_default?: boolean | undefined
  /** Kept only in a scope that says so. */
  billing_address?: Record<string, string | undefined> | undefined
}

/** An owner's claim on a token: one row a source reference. */
export interface SourceReference extends OwnerId {
  tokenId: string
  onFile: OnFile
  /** Grows by one with each change. */
  version: number
  /** ms since the epoch. */
  createdAt: number
  updatedAt: number
  /** The receipt of the job that changed it last. */
  lastReceipt: string
  /** Of the batch that changed it last, and the line of its file. */
  mark: { batchNo: number; line: number } | null
  /** As it was before the single job that changed it last: what a reversal puts back. */
  before: Pick<SourceReference, 'tokenId' | 'onFile' | 'lastReceipt' | 'mark'> | null
}

export const REFERENCE_OUTCOMES = ['ADDED', 'CHANGED', 'MOVED', 'UNCHANGED', 'OLDER'] as const
export type ReferenceOutcome = (typeof REFERENCE_OUTCOMES)[number]

/** What a job or a record gives. */
export interface Claim {
  owner: OwnerId
  onFile: OnFile
}

export interface ClaimContext {
  /** The token that stands for the claim's card. */
  tokenId: string
  receiptId: string
  /** ms since the epoch. */
  now: number
  /** Undefined for a single job. */
  mark: { batchNo: number; line: number } | undefined
  /** The token was the owner's, and has got the claim's card. */
  relinked?: boolean | undefined
}

export interface JudgedClaim {
  outcome: ReferenceOutcome
  /**
   * The row to be written; undefined where nothing is. What is confirmed is written, too: no earlier line of the batch, and
   * no reversal of an earlier job, takes it back.
   */
  row: SourceReference | undefined
  /** The token that the owner had under this id before, where it was another one. */
  previousToken: string | undefined
}

/**
 * What becomes of a claim. `stored` is the row of its owner, as earlier records left it. Of two lines of one batch the later
 * one stands, in whatever order they come.
 */
export function judgeClaim(
  stored: SourceReference | undefined,
  { owner, onFile }: Claim,
  at: ClaimContext,
): JudgedClaim {
  const { tokenId, receiptId, now, mark, relinked = false } = at
  if (!stored) {
    const row = {
      ...owner,
      ...{ tokenId, onFile: merge({}, onFile), version: 1, createdAt: now, updatedAt: now },
      ...{ lastReceipt: receiptId, mark: mark ?? null, before: null },
    }
    return { outcome: 'ADDED', row, previousToken: undefined }
  }
  if (mark && stored.mark?.batchNo === mark.batchNo && mark.line < stored.mark.line) {
    return { outcome: 'OLDER', row: undefined, previousToken: undefined }
  }
  const merged = merge(stored.onFile, onFile)
  const isMoved = stored.tokenId !== tokenId
  const isKept = !isMoved && !relinked && isSame(merged, stored.onFile)
  const { tokenId: formerToken, onFile: formerOnFile, lastReceipt, mark: formerMark } = stored
  const row = {
    ...stored,
    ...{ tokenId, onFile: merged, version: stored.version + 1, lastReceipt: receiptId, mark: mark ?? null },
    updatedAt: isKept ? stored.updatedAt : now,
    // A batch isn't reversed.
    before: mark ? null : { tokenId: formerToken, onFile: formerOnFile, lastReceipt, mark: formerMark },
  }
  const outcome = isMoved ? 'MOVED' : isKept ? 'UNCHANGED' : 'CHANGED'
  return { outcome, row, previousToken: isMoved ? formerToken : undefined }
}

/** What the single job that wrote this row last came to. */
export function toldAgain({ version, tokenId, onFile, before }: SourceReference): Omit<JudgedClaim, 'row'> | undefined {
  if (version === 1) return { outcome: 'ADDED', previousToken: undefined }
  if (!before) return undefined
  if (before.tokenId !== tokenId) return { outcome: 'MOVED', previousToken: before.tokenId }
  return { outcome: isSame(before.onFile, onFile) ? 'UNCHANGED' : 'CHANGED', previousToken: undefined }
}

/**
 * The row after a reversal of the single job that wrote it last: `removed` where that job added it, or where the token that
 * it belonged to before isn't live any more. Undefined where the job only confirmed it.
 */
export function takeBack<Row extends SourceReference>(
  row: Row,
  { reversalId, now, isLive }: { reversalId: string; now: number; isLive: (tokenId: string) => boolean },
): Row | 'removed' | undefined {
  if (row.version === 1) return 'removed'
  const { before } = row
  if (!before) return undefined
  if (before.tokenId !== row.tokenId && !isLive(before.tokenId)) return 'removed'
  const { tokenId, onFile, mark } = before
  const next = { version: row.version + 1, updatedAt: now, lastReceipt: reversalId, before: null }
  return { ...row, tokenId, onFile, mark, ...next }
}

const IDS_MAX = 50

/** What is given takes the place of what stands; network transaction ids are added to those that are known. */
function merge(former: OnFile, given: OnFile): OnFile {
  const { network_transaction_ids: listed = [], network_transaction_id: used } = given
  const known = former.network_transaction_ids ?? []
  const fresh = [...listed, ...(used === undefined ? [] : [used])].filter(id => !known.includes(id))
  const ids = [...known, ...new Set(fresh)].slice(-IDS_MAX)
  const inUse = used ?? listed.at(-1)
  return {
    ...former,
    ...given,
    ...(ids.length > 0 ? { network_transaction_ids: ids } : {}),
    ...(inUse === undefined ? {} : { network_transaction_id: inUse }),
  }
}

function isSame(one: OnFile, other: OnFile): boolean {
  return canonical(one) === canonical(other)
}

/** The store doesn't keep the order of members. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}

/** Mastercard's published form; others are kept and counted. */
export function isUsualLinkId(id: string): boolean {
  return /^[A-Za-z0-9_-]{22}$/.test(id)
}

/** One text for each owner: no two owners have the same. */
export function ownerKey({ tokenScope, provider, providerAccount, customerId, cardId }: OwnerId): string {
  return JSON.stringify([tokenScope, provider, providerAccount, customerId, cardId])
}
