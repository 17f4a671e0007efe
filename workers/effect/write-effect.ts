// Writes a list of effects at once: one statement per list of rows. Rows are sorted and the lists always come in the
// same order, so that two transactions that write the same rows wait for each other without a deadlock. What networks
// write has its places in it. Two kinds of row are outside that order: rows of intents, which are protected by their
// receipt's lock, and compensations, which come last and can deadlock with the writing of a provider's answer.
// PostgreSQL ends such a deadlock, which counts as a lost race. Nothing is decided here, but races with others are
// detected.
import { type Db, LostRace } from '../../src/store/pool.ts'
import * as references from '../../src/store/reference/source-references.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type Effect, type Miss, mergeEffects, type NetworkEffects } from './effect.ts'
import { type ReleaseDeps, releaseOwnersOf } from './note-releases.ts'

export interface EffectDeps extends ReleaseDeps {
  networks: { effects: NetworkEffects }
}

/**
 * Writes the effects in the transaction that holds the locks of their receipts. No two effects may name the same token.
 * The statements are sent without waiting, in the order in which they stand here, and PostgreSQL runs them in that
 * order. What reads first follows after their results. Throws `LostRace` if others have changed
 * rows on which a decision was made.
 */
export async function writeEffects(db: Db, effects: readonly Effect[], deps: EffectDeps): Promise<void> {
  const all = mergeEffects(effects)
  const now = deps.clock()
  const deleted = all.updates.filter(({ status }) => status === 'DELETED')
  const networks = deps.networks.effects
  await Promise.all([
    networks.beforeTokens(db, all.networks, now),
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
    networks.afterTokens(
      db,
      all.networks,
      deleted.map(({ tokenId }) => tokenId),
      now,
    ),
  ])
  await networks.last(db, all.networks, now)
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
  const [isBeyond] = await Promise.all([
    guesses.addAll(db, misses),
    ...[...turns].map(turn => cardPhases.assertTurn(db, turn)),
  ])
  if (isBeyond) throw new LostRace('others guessed meanwhile')
}
