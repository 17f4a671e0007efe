// `relink`: if a record gives another number for the card of a known reference, the reference keeps its token, which is
// linked to that number, provided that the token has only this owner and no live token has the number. Tokens of third
// parties aren't linked, nor is anything linked for a record that comes too late or is refused for its expiry date. The
// record is worked as a change of the token's card. A number whose token is linked to another one in the same chunk
// counts as taken until the next chunk.
import { type Db, LostRace } from '../../src/store/pool.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { isExpired } from '../../src/token/card.ts'
import { isOlderClaim } from '../../src/token/on-file.ts'
import { isSameCard } from '../../src/token/token.ts'
import { reversibleSince } from '../card/before-image.ts'
import type { Deps } from '../deps.ts'
import type { NetworkEffect } from '../effect/effect.ts'
import { writeEffects } from '../effect/write-effect.ts'
import type { ChunkContext } from './chunk.ts'
import { openClaims } from './claims.ts'
import type { Relinks } from './fold.ts'
import { isNewest } from './source-times.ts'

export interface CountedRelinks extends Relinks {
  /** How many owners each token had when it was read. */
  owners: ReadonlyMap<string, number>
  /** Ids of tokens that weren't linked to the card of a record, because they had other owners. */
  shared: ReadonlySet<string>
  /** ms since the epoch: owners who left a token after this time count, too. */
  since: number
}

/**
 * Undefined if the batch doesn't relink. `cards`: the tokens of the records' cards; `known`: the references of their
 * owners.
 */
export async function openRelinks(
  cards: ReadonlyMap<string, StoredToken>,
  known: ReadonlyMap<string, StoredReference>,
  context: ChunkContext,
  { store }: Pick<Deps, 'store'>,
): Promise<CountedRelinks | undefined> {
  if (!context.work.request.policy?.relink) return undefined
  const since = reversibleSince(context.work.now)
  const owned = [...known.values()].map(({ tokenId }) => tokenId)
  const ids = [...new Set([...owned, ...[...cards.values()].map(({ tokenId }) => tokenId)])]
  const [found, owners] = await Promise.all([tokens.findByIds(store, ids), references.countClaims(store, ids, since)])
  const bases = new Map(found.map(row => [row.tokenId, row]))
  const rows = new Map(bases)
  const shared = new Set<string>()
  const claims = openClaims(known, context)
  return {
    owners,
    shared,
    since,
    baseOf: tokenId => bases.get(tokenId),
    rowFor({ line, claim, contract, facts, given, giver }, isTaken) {
      const reference = claim && claims.current(claim)
      const row = reference && rows.get(reference.tokenId)
      if (!row || isTaken || contract || row.thirdParty || row.status === 'DELETED') return undefined
      if (isSameCard(row.cards, facts.fingerprints.known)) return undefined
      const { batch, work, acceptedAt, former } = context
      const mark = { batchNo: batch?.batchNo ?? 0, line }
      const isOlder = isOlderClaim(reference, { mark, former, newest: isNewest(work.request), now: work.now, giver })
      const isRefused = work.request.policy?.on_expired === 'reject' && isExpired(given, acceptedAt)
      if (isOlder || isRefused) return undefined
      const isOnly = (owners.get(row.tokenId) ?? 0) + claims.gainOf(row.tokenId) === 1
      if (!isOnly) shared.add(row.tokenId)
      return isOnly ? row : undefined
    },
    note({ line, claim, giver }, row, relinked) {
      if (!row) return
      rows.set(row.tokenId, row)
      if (claim) claims.judge({ line, claim, giver }, row.tokenId, relinked)
    },
  }
}

/** What happens to the scheme tokens of tokens that were linked to another card. */
export async function replacementsOf(
  relinked: readonly StoredToken[],
  { work }: ChunkContext,
  deps: Deps,
): Promise<NetworkEffect[]> {
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const linked = relinked.map(token => ({ token, action: undefined }))
  return (await deps.networks.schemeTokens.replace(deps.store, linked, job, deps)).effects
}

/**
 * Writes the linked tokens. Throws `LostRace` if the number of owners of one has changed. Called before new tokens are
 * inserted, because one of those may have a number that a linked token had before.
 */
export async function writeRelinked(
  db: Db,
  { updates, networks }: { updates: readonly StoredToken[]; networks: readonly NetworkEffect[] },
  relinks: CountedRelinks,
  deps: Deps,
): Promise<void> {
  const ids = updates.map(({ tokenId }) => tokenId)
  await tokens.holdAll(db, ids)
  await expectOwners(db, ids, relinks)
  await writeEffects(db, [{ updates, networks }], deps)
}

/**
 * Throws `LostRace` if the number of owners of one of these tokens has changed. The transaction has locked their rows, as
 * does a job that adds an owner.
 */
export async function expectOwners(
  db: Db,
  tokenIds: readonly string[],
  { owners, since }: Pick<CountedRelinks, 'owners' | 'since'>,
): Promise<void> {
  const owned = await references.countClaims(db, tokenIds, since)
  if (tokenIds.some(id => owned.get(id) !== owners.get(id)))
    throw new LostRace('a token got or lost an owner meanwhile')
}
