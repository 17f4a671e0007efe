// Finds the records that come too late for their owner, and make no token and change none. In a batch with `newest` the owner
// was given another card, the number of the owner's token was changed, or the owner was released after the record's source
// time. If a file is migrated again with a policy that can take a card's token away (`relink`, `on_orphan`), a later line of
// the file gave the owner another card in the earlier run, and the record's card has no token any more.
import { type Db, LostRace, type Store } from '../../src/store/pool.ts'
import * as released from '../../src/store/reference/released-references.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { isLater } from '../../src/token/newest.ts'
import { isOlderClaim, type OwnerId, ownerKey } from '../../src/token/on-file.ts'
import type { Giver } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'
import type { ChunkContext } from './chunk.ts'
import { openClaims, ownersOf } from './claims.ts'
import type { OlderClaims, PreparedCreate } from './fold.ts'
import { isNewest } from './source-times.ts'

export interface FoundOlder extends OlderClaims {
  /** The tokens of the owners, by id. */
  tokens: ReadonlyMap<string, StoredToken>
  /** After new references are written: throws LostRace if one of their owners came and was released meanwhile. */
  check(db: Db): Promise<void>
}

/**
 * Undefined if no record of the batch can come too late. `stored`: the tokens of the records' cards. `known`: the
 * references of the owners, read before this is called: an owner without one was released before, if ever.
 */
export async function openOlderClaims(
  prepared: readonly PreparedCreate[],
  { stored, known }: { stored: ReadonlyMap<string, StoredToken>; known: ReadonlyMap<string, StoredReference> },
  context: ChunkContext,
  { store, ring }: Pick<Deps, 'store' | 'ring'>,
): Promise<FoundOlder | undefined> {
  if (!isNewest(context.work.request)) return openEarlierLines(known, context, store)
  const absent = ownersOf(prepared).filter(owner => !known.has(ownerKey(owner)))
  const [owned, releases] = await Promise.all([tokensOf(store, known), openReleases(store, absent, ring)])
  const claims = openClaims(known, context)
  const cards = new Map([...stored.values()].map(row => [row.tokenId, row]))
  return {
    tokens: owned,
    check: releases.check,
    find({ claim, giver, line }, cardToken) {
      if (!claim) return undefined
      const reference = claims.current(claim)
      if (!reference) {
        return releases.isLate(claim.owner, giver) ? { tokenId: undefined, outdated: false } : undefined
      }
      const { tokenId } = reference
      if (tokenId === cardToken) return undefined
      const mark = { batchNo: context.batch?.batchNo ?? 0, line }
      const number = (owned.get(tokenId) ?? cards.get(tokenId))?.givenAt?.number
      const isNumberLater = number !== undefined && isLater(number, giver)
      const isOlder = isOlderClaim(reference, { mark, newest: true, now: context.work.now, giver })
      if (!isOlder && !isNumberLater) return undefined
      return { tokenId, outdated: !isOlder }
    },
    note({ line, claim, giver }, tokenId, relinked) {
      if (claim && tokenId !== undefined) claims.judge({ line, claim, giver }, tokenId, relinked)
    },
  }
}

async function openEarlierLines(
  known: ReadonlyMap<string, StoredReference>,
  context: ChunkContext,
  store: Store,
): Promise<FoundOlder | undefined> {
  const { former, work } = context
  const { relink = false, on_orphan = 'keep' } = work.request.policy ?? {}
  if (former.size === 0 || (!relink && on_orphan === 'keep')) return undefined
  const owned = await tokensOf(store, known)
  const claims = openClaims(known, context)
  return {
    tokens: owned,
    check: async () => {},
    find({ claim, line }, cardToken) {
      const reference = cardToken === undefined && claim ? claims.current(claim) : undefined
      if (!reference?.mark || !former.has(reference.mark.batchNo)) return undefined
      return line < reference.mark.line ? { tokenId: reference.tokenId, outdated: false } : undefined
    },
    note({ line, claim, giver }, tokenId, relinked) {
      if (claim && tokenId !== undefined) claims.judge({ line, claim, giver }, tokenId, relinked)
    },
  }
}

async function tokensOf(store: Store, known: ReadonlyMap<string, StoredReference>): Promise<Map<string, StoredToken>> {
  const ids = [...new Set([...known.values()].map(({ tokenId }) => tokenId))]
  const rows = ids.length === 0 ? [] : await tokens.findByIds(store, ids)
  return new Map(rows.map(row => [row.tokenId, row]))
}

/** The releases of owners who have no reference. */
export interface OwnerReleases {
  /** Whether the owner was released at that time or later. */
  isLate(owner: OwnerId, giver: Giver): boolean
  /** After new references are written: throws LostRace if one of their owners came and was released meanwhile. */
  check(db: Db): Promise<void>
}

export async function openReleases(
  db: Db,
  owners: readonly OwnerId[],
  ring: Pick<Deps['ring'], 'ownerHashes' | 'ownerVersions'>,
): Promise<OwnerReleases> {
  const sought = owners.map(ownerKey).map(key => ({ key, hashes: ring.ownerHashes(key) }))
  const versions = ring.ownerVersions()
  const found = await released.find(db, sought, versions)
  return {
    isLate(owner, [time]) {
      const release = found.get(ownerKey(owner))
      return release !== undefined && release.releasedAt >= time
    },
    async check(again) {
      const now = await released.find(again, sought, versions)
      if ([...now].some(([key, { releasedAt }]) => found.get(key)?.releasedAt !== releasedAt))
        throw new LostRace('an owner was released meanwhile')
    },
  }
}
