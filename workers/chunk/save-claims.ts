// Writes the claims of a chunk's records together with the tokens that the records change. Claims are decided here,
// inside the transaction, because only then the token of each record's card is certain.
import type { OnOrphan } from '../../src/job/choices.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Claim } from '../../src/token/on-file.ts'
import { confirmed } from '../card/before-image.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../effect/effect.ts'
import { writeEffects } from '../effect/write-effect.ts'
import { endOrphans } from '../reference/orphans.ts'
import type { ChunkContext } from './chunk.ts'
import { type ClaimingRecord, type Claims, claimedOf, openClaims } from './claims.ts'
import type { ClaimingOutcome } from './fold.ts'
import { type CountedRelinks, expectOwners } from './relinks.ts'

/** What is written besides the claims. */
interface Beside {
  effect: Effect
  /** Tokens that were already written. */
  written?: readonly StoredToken[]
  /** The tokens of all records, as they were read. */
  bases: readonly StoredToken[]
  /** By `ownerKey`, the stored references of the records' owners, as they were read. */
  references: ReadonlyMap<string, StoredReference>
  /** Undefined if the batch doesn't relink. */
  relinks?: CountedRelinks | undefined
  /** Records that made a token, whose owners have no reference and are no other record's owners. */
  added?: readonly AddedClaim[] | undefined
}

/** The claim of a record that made a token: its outcome is always ADDED. */
export interface AddedClaim extends ClaimingRecord {
  tokenId: string
}

/**
 * Writes the claims. Adds to the outcomes the results of their claims, and the new rows of tokens that lost their last
 * owner.
 */
export async function saveWithClaims(
  db: Db,
  outcomes: readonly ClaimingOutcome[],
  { effect, written = [], bases, references: known, relinks, added = [] }: Beside,
  context: ChunkContext,
  deps: Deps,
): Promise<void> {
  const claiming = inFileOrder(outcomes)
  if (claiming.length === 0 && added.length === 0) return writeEffects(db, [effect], deps)
  const claims = openClaims(known, context)
  for (const one of added)
    if (claims.judge(one, one.tokenId).outcome !== 'ADDED') throw new Error('broken law: the owner has a reference')
  const ends = claiming.map(one => claims.judge(one, one.tokenId, one.relinked))
  const compared = new Set(claiming.flatMap(({ outdated, tokenId }) => (outdated ? tokenId : [])))
  const touches = touchesOf({ claims, compared }, [...(effect.updates ?? []), ...written], bases, context)
  const onOrphan = orphanPolicy(context)
  const left = onOrphan ? [...claims.left()] : []
  if (left.length > 0) {
    const changed = [...(effect.updates ?? []), ...touches].map(({ tokenId }) => tokenId)
    const held = await tokens.holdAll(db, [...new Set([...changed, ...left])])
    await expectAsRead(db, held, claims, { bases, written, relinks })
  }
  await writeEffects(db, [{ ...effect, touches, ...claims.effect() }], deps)
  const { now, receiptId } = context.work
  const ended = await endOrphans(db, new Map(left.map(id => [id, onOrphan ?? 'keep'])), { now, receiptId }, deps)
  const former = ends.flatMap(({ previousToken }) => previousToken ?? [])
  const previous = former.length === 0 ? NO_TOKENS : await rowsOf(db, former, claiming, bases)
  for (const [index, outcome] of claiming.entries()) {
    const end = ends[index]
    if (end) outcome.claimed = claimedOf(end, previous)
  }
  for (const outcome of outcomes) if (outcome.token) outcome.token = ended.get(outcome.token.tokenId) ?? outcome.token
}

/**
 * Throws `LostRace` if what the claims were decided on has changed. Whether a token is ended is decided by its owners of
 * now: claims that were decided on others would take a token away that no order of the jobs takes.
 */
async function expectAsRead(
  db: Db,
  held: Awaited<ReturnType<typeof tokens.holdAll>>,
  claims: Claims,
  { bases, written = [], relinks }: Pick<Beside, 'bases' | 'written' | 'relinks'>,
): Promise<void> {
  const left = claims.left()
  const changedHere = new Set(written.map(({ tokenId }) => tokenId))
  const read = bases.filter(({ tokenId }) => left.has(tokenId) && !changedHere.has(tokenId))
  if (read.some(({ tokenId, version }) => held.get(tokenId)?.version !== version))
    throw new LostRace('a token was changed meanwhile')
  await references.expectVersions(db, claims.standing())
  const shared = [...left].filter(tokenId => relinks?.shared.has(tokenId))
  if (relinks) await expectOwners(db, shared, relinks)
}

/** Sets the results of the claims in a dry run, which names no token. */
export function predictClaims(
  outcomes: readonly ClaimingOutcome[],
  references: ReadonlyMap<string, StoredReference>,
  context: ChunkContext,
): void {
  const claims = openClaims(references, context)
  for (const outcome of inFileOrder(outcomes)) {
    const { tokenId, relinked } = outcome
    outcome.claimed = { outcome: claims.judge(outcome, tokenId, relinked).outcome, previous: undefined }
  }
}

/** What is done to tokens that lost their last owner by the chunk's claims; undefined: nothing. */
function orphanPolicy({ work }: Pick<ChunkContext, 'work'>): Exclude<OnOrphan, 'keep'> | undefined {
  const onOrphan = work.request.policy?.on_orphan ?? 'keep'
  return onOrphan === 'keep' ? undefined : onOrphan
}

function inFileOrder(outcomes: readonly ClaimingOutcome[]) {
  return outcomes
    .filter(
      (one): one is ClaimingOutcome & { claim: Claim; tokenId: string } => !!one.claim && one.tokenId !== undefined,
    )
    .sort((a, b) => a.line - b.line)
}

/**
 * Names this receipt as the last one in the tokens that gain an owner, and in those with whose number a claim was
 * compared (`compared`), if their last change is still reversible. So no reversal of an earlier job can delete the
 * former, or take the number of the latter back.
 */
function touchesOf(
  { claims, compared }: { claims: Claims; compared: ReadonlySet<string> },
  changed: readonly StoredToken[],
  bases: readonly StoredToken[],
  { work }: ChunkContext,
) {
  if (bases.length === 0) return []
  const gained = claims.gained()
  const named = new Set(changed.map(({ tokenId }) => tokenId))
  const isTouched = (row: StoredToken) =>
    gained.has(row.tokenId) || (compared.has(row.tokenId) && isReversible(row, work))
  return [...new Map(bases.map(row => [row.tokenId, row])).values()]
    .filter(row => !named.has(row.tokenId) && isTouched(row))
    .map(({ tokenId, version }) => ({ tokenId, version, receiptId: work.receiptId }))
}

const isReversible = (row: StoredToken, work: ChunkContext['work']) => confirmed(row, work) !== row

const NO_TOKENS: ReadonlyMap<string, StoredToken> = new Map()

/** The rows of these tokens, by id, together with all rows that the caller has read. */
async function rowsOf(
  db: Db,
  tokenIds: readonly string[],
  claiming: readonly ClaimingOutcome[],
  bases: readonly StoredToken[],
): Promise<Map<string, StoredToken>> {
  const known = new Map([...bases, ...claiming.flatMap(({ token }) => token ?? [])].map(row => [row.tokenId, row]))
  const missing = [...new Set(tokenIds)].filter(id => !known.has(id))
  const found = missing.length === 0 ? [] : await tokens.findByIds(db, missing)
  return new Map([...known, ...found.map(row => [row.tokenId, row] as const)])
}
