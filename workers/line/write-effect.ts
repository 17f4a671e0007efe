// Writes a list of effects at once: one statement per list of rows. Rows are sorted and the lists always come in the
// same order, so that two transactions that write the same rows wait for each other without a deadlock. Two kinds of
// row are outside that order: rows of intents, which are protected by their receipt's lock, and compensations, which
// come last and can deadlock with the writing of a provider's answer. PostgreSQL ends such a deadlock, which counts as
// a lost race. Nothing is decided here, but races with others are detected.
import { type Db, LostRace } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as references from '../../src/store/reference/source-references.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { formerOf } from '../card/scheme-replacement.ts'
import { findCompensations, isSameCompensation, recordCompensations } from '../provider/owed-compensation.ts'
import { type ReleaseDeps, releaseOwnersOf } from '../reference/note-releases.ts'
import { type Compensation, type Effect, type Miss, mergeEffects, type Replacement, type TakeUp } from './effect.ts'

/**
 * Writes the effects in the transaction that holds the locks of their receipts. No two effects may name the same token.
 * The statements are sent without waiting, in the order in which they stand here, and PostgreSQL runs them in that
 * order. Compensations follow after their results, because they read first. Throws `LostRace` if others have changed
 * rows on which a decision was made.
 */
export async function writeEffects(db: Db, effects: readonly Effect[], deps: ReleaseDeps): Promise<void> {
  const all = mergeEffects(effects)
  const now = deps.clock()
  const deleted = all.updates.filter(({ status }) => status === 'DELETED')
  await Promise.all([
    takeUp(db, all.takeUps, now),
    tokens.insertAll(db, all.inserts),
    holdRows(db, all),
    tokens.updateAll(db, all.updates),
    tokens.touchAll(db, all.touches),
    beforeImages.eraseOf(db, all.erasedImages),
    beforeImages.insertAll(db, all.beforeImages),
    references.insertAll(db, all.newReferences),
    references.updateAll(db, all.changedReferences),
    releaseOwnersOf(db, deleted, deps),
    addMisses(db, all.misses),
    sequences.advanceAll(db, all.sequences),
    // After the tokens, because a job that asks a network for a token holds the token's row while it records that.
    replaceSchemes(db, all.replacements),
    schemeTokens.retireOf(db, [...all.retirements, ...all.replacements.map(({ tokenId }) => tokenId)].sort(), now),
    schemeTokens.displace(
      db,
      all.replacements.flatMap(({ tokenId, fresh, made }) => (fresh || made !== undefined ? tokenId : [])).sort(),
    ),
    schemeTokens.insertAll(
      db,
      [...all.provisions, ...all.replacements.flatMap(({ fresh }) => fresh ?? [])].toSorted(byProvision),
    ),
    takeOver(db, all.replacements, now),
    endLeftovers(db, all.leftovers, now),
  ])
  await compensate(db, all.compensations, now)
}

function byProvision(a: { provisionId: string }, b: { provisionId: string }): number {
  return a.provisionId < b.provisionId ? -1 : 1
}

/** Marks third parties' tokens as used, before the rows of the tokens that use them are written. */
async function takeUp(db: Db, takeUps: readonly TakeUp[], now: number): Promise<void> {
  const ids = takeUps.flatMap(({ provisionIds }) => provisionIds).sort()
  const [taken] = await Promise.all([
    schemeTokens.takeUp(db, ids, now),
    intents.abandonOf(db, takeUps.map(({ receiptId }) => receiptId).sort(), now),
  ])
  if (taken !== ids.length) throw new LostRace('a token of a third party was given up meanwhile')
}

/** Takes over what jobs had made for the cards that their tokens have now. */
async function takeOver(db: Db, replacements: readonly Replacement[], now: number): Promise<void> {
  const ids = replacements.flatMap(({ made }) => made ?? []).sort()
  const taken = await schemeTokens.takeOver(db, ids, now)
  if (taken !== ids.length) throw new LostRace('a scheme token was given up meanwhile')
}

/** Retires what jobs that end had made at providers and no token's row has taken over. */
export async function endLeftovers(db: Db, receiptIds: readonly string[], now: number): Promise<void> {
  const sorted = receiptIds.toSorted()
  await Promise.all([schemeTokens.retireUntakenOf(db, sorted, now), intents.abandonOf(db, sorted, now)])
}

/** Two statements change token rows. If both have rows to change, all rows are locked first, in one order. */
async function holdRows(db: Db, { updates, touches }: Required<Effect>): Promise<void> {
  if (updates.length === 0 || touches.length === 0) return
  await tokens.holdAll(
    db,
    [...updates, ...touches].map(({ tokenId }) => tokenId),
  )
}

async function addMisses(db: Db, misses: readonly Miss[]): Promise<void> {
  // A card that is known under a version that this process hasn't heard of is no miss.
  const turns = new Set(misses.flatMap(({ turn = [] }) => turn))
  const [reached] = await Promise.all([
    guesses.addAll(db, misses),
    ...[...turns].map(turn => cardPhases.assertTurn(db, turn)),
  ])
  const isBeyond = misses.some(({ missesMax = Number.POSITIVE_INFINITY }, index) => (reached[index] ?? 0) > missesMax)
  if (isBeyond) throw new LostRace('others guessed meanwhile')
}

/** Locks the current scheme tokens, and finds those that have changed since the decision. */
async function replaceSchemes(db: Db, replacements: readonly Replacement[]): Promise<void> {
  if (replacements.length === 0) return
  const held = await storedSchemes.holdCurrent(
    db,
    replacements.map(({ tokenId }) => tokenId),
  )
  const current = new Map(held.map(row => [row.tokenId, formerOf(row)]))
  for (const { tokenId, former } of replacements) {
    const now = current.get(tokenId)
    const isSame =
      now?.provisionId === former?.provisionId && now?.isLive === former?.isLive && now?.isInUse === former?.isInUse
    if (!isSame) throw new LostRace('a scheme token was changed meanwhile')
  }
}

/** Reads the intents again under the receipts' locks: from then on only the holder of a lease writes to them. */
async function compensate(db: Db, compensations: readonly Compensation[], now: number): Promise<void> {
  if (compensations.length === 0) return
  const receiptIds = compensations.map(({ receiptId }) => receiptId)
  const found = new Map((await findCompensations(db, receiptIds)).map(one => [one.receiptId, one]))
  for (const one of compensations) {
    const current = found.get(one.receiptId)
    if (!current || !isSameCompensation(one, current)) throw new LostRace('something was done at a provider meanwhile')
  }
  await recordCompensations(db, compensations, now)
}
