// Decides the claims of a chunk's records on source references, in file order: each claim sees what the claims of
// earlier records have changed. Nothing is looked up or saved here.
import type { Claimed } from '../../src/job/chunk-outcomes.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import {
  type Claim,
  type JudgedClaim,
  judgeClaim,
  type OwnerId,
  ownerKey,
  type SourceReference,
} from '../../src/token/on-file.ts'
import type { Giver } from '../../src/token/token.ts'
import { reversibleSince } from '../card/before-image.ts'
import type { Effect } from '../effect/effect.ts'
import type { ChunkContext } from './chunk.ts'
import { isNewest } from './source-times.ts'

export interface ClaimingRecord {
  line: number
  claim: Claim
  /** Default: the giver of the whole batch. */
  giver?: Giver | undefined
  /** The number of the owner's token was changed later. */
  outdated?: boolean | undefined
}

export interface Claims {
  /** Decides the claim of the next record in file order. `tokenId`: the token of the record's card. */
  judge(record: ClaimingRecord, tokenId: string, relinked?: boolean): Omit<JudgedClaim, 'row'>
  /** The owner's reference as the records so far have left it. */
  current(claim: Claim): StoredReference | undefined
  /** The change of the token's number of owners by the records so far, counted as `countClaims` does. */
  gainOf(tokenId: string): number
  /** The references that the records so far have added or changed. */
  effect(): Required<Pick<Effect, 'newReferences' | 'changedReferences'>>
  /** Ids of tokens that have gained an owner. */
  gained(): Set<string>
  /** Ids of tokens that may have lost their last owner. */
  left(): Set<string>
  /** The stored references for which records came too late, and that `effect` doesn't write. */
  standing(): StoredReference[]
}

/** Opens the claims of a chunk. `stored`: the stored references by `ownerKey`. */
export function openClaims(stored: ReadonlyMap<string, StoredReference>, context: ChunkContext): Claims {
  const { work, batch, acceptedAt, former } = context
  const newest = isNewest(work.request)
  const { receiptId, now } = work
  const judged = new Map<string, StoredReference>()
  const gains = new Map<string, number>()
  const left = new Set<string>()
  const older = new Set<string>()
  const gain = (tokenId: string, by: 1 | -1) => gains.set(tokenId, (gains.get(tokenId) ?? 0) + by)
  const current = (key: string) => judged.get(key) ?? stored.get(key)
  const since = reversibleSince(now)
  /**
   * Until now a reversal could bring the owner back to the token before. The chunk's change of the reference ends that,
   * so the owner no longer counts for that token.
   */
  const forgo = ({ before, tokenId, updatedAt }: StoredReference) => {
    if (before && before.tokenId !== tokenId && updatedAt > since) gain(before.tokenId, -1)
  }
  const keep = (key: string, row: SourceReference) => {
    const base = stored.get(key)
    if (base && !judged.has(key)) forgo(base)
    // The version grows by one, however many records of the chunk name the owner. The row may be changed in place,
    // because `judgeClaim` made it for this call.
    judged.set(key, Object.assign(row, { version: base ? base.version + 1 : 1, referenceNo: base?.referenceNo }))
  }
  return {
    current: ({ owner }) => current(ownerKey(owner)),
    judge({ line, claim, giver = [acceptedAt, '', line], outdated }, tokenId, relinked) {
      const key = ownerKey(claim.owner)
      const mark = { batchNo: batch?.batchNo ?? 0, line }
      const at = { tokenId, receiptId, now, mark, former, relinked, giver, newest, outdated }
      const { outcome, row, previousToken } = judgeClaim(current(key), claim, at)
      if (row) keep(key, row)
      if (outcome === 'ADDED' || outcome === 'MOVED') gain(tokenId, 1)
      if (previousToken !== undefined) {
        gain(previousToken, -1)
        left.add(previousToken)
      }
      // A record of a later time has moved this owner to another token.
      if (outcome === 'OLDER' && current(key)?.tokenId !== tokenId) {
        left.add(tokenId)
        older.add(key)
      }
      return { outcome, previousToken }
    },
    gainOf: tokenId => gains.get(tokenId) ?? 0,
    effect: () => {
      const rows = [...judged.values()]
      return {
        newReferences: rows.filter(({ referenceNo }) => referenceNo === undefined),
        changedReferences: rows.filter(({ referenceNo }) => referenceNo !== undefined),
      }
    },
    gained() {
      const gained = new Set<string>()
      for (const [key, { tokenId }] of judged) if (stored.get(key)?.tokenId !== tokenId) gained.add(tokenId)
      return gained
    },
    left: () => left,
    standing: () => [...older].flatMap(key => (judged.has(key) ? [] : (stored.get(key) ?? []))),
  }
}

/** The owners in the claims of a chunk's records. */
export function ownersOf(records: readonly { claim: Claim | undefined }[]): OwnerId[] {
  const owners = new Map<string, OwnerId>()
  for (const { claim } of records) if (claim) owners.set(ownerKey(claim.owner), claim.owner)
  return [...owners.values()]
}

/** The claim as an outcome shows it. `previousOf` finds the row of the former token. */
export function claimedOf(
  { outcome, previousToken }: Omit<JudgedClaim, 'row'>,
  previousOf: ReadonlyMap<string, NonNullable<Claimed['previous']>>,
): Claimed {
  return { outcome, previous: previousToken === undefined ? undefined : previousOf.get(previousToken) }
}
