// The part of an effect that is about providers, as data, and its writing. The line says in which order its statements
// stand among those of the core (effect/write-effect.ts). Rows are sorted, as there.
import { type Db, LostRace } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { NewScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { NetworkEffect, NetworkEffects } from '../effect/effect.ts'
import { type Compensation, findCompensations, isSameCompensation, recordCompensations } from './owed-compensation.ts'
import { formerOf, type Replacement } from './scheme-replacement.ts'

/** The members are lists; a missing list is empty. */
export interface ProviderEffect extends NetworkEffect {
  /** Tokens of third parties that this job's tokens take up. */
  takeUps?: readonly TakeUp[]
  /** Scheme tokens to be provisioned for new tokens. */
  provisions?: readonly NewScheme[]
  /** Ids of tokens whose provisionings are to be retired. */
  retirements?: readonly string[]
  /** Tokens that are linked to another card now, and what happens to their scheme tokens. */
  replacements?: readonly Replacement[]
  /** Receipts of jobs that may have had scheme tokens made for cards that their tokens don't get: those are retired. */
  leftovers?: readonly string[]
  /** What refused jobs have left at providers. */
  compensations?: readonly Compensation[]
}

/**
 * For a job that named a contract with a third party: the provisionings that its tokens use. All other open intents of
 * the job are abandoned.
 */
export interface TakeUp {
  receiptId: string
  provisionIds: readonly string[]
}

export function effectsOf(effect: Omit<ProviderEffect, 'of'>): ProviderEffect[] {
  return [{ of: 'networks', ...effect }]
}

export const providerEffects: NetworkEffects = {
  /** Marks third parties' tokens as used, before the rows of the tokens that use them are written. */
  async beforeTokens(db, effects: readonly ProviderEffect[], now) {
    const takeUps = effects.flatMap(effect => effect.takeUps ?? [])
    const ids = takeUps.flatMap(({ provisionIds }) => provisionIds).sort()
    const [taken] = await Promise.all([
      schemeTokens.takeUp(db, ids, now),
      intents.abandonOf(db, takeUps.map(({ receiptId }) => receiptId).sort(), now),
    ])
    if (taken !== ids.length) throw new LostRace('a token of a third party was given up meanwhile')
  },

  /** A job that asks a network for a token holds the token's row while it records that. */
  afterTokens(db, effects: readonly ProviderEffect[], deleted, now) {
    const replacements = effects.flatMap(effect => effect.replacements ?? [])
    const retirements = effects.flatMap(effect => effect.retirements ?? [])
    const provisions = effects.flatMap(effect => effect.provisions ?? [])
    const leftovers = effects.flatMap(effect => effect.leftovers ?? [])
    const replaced = replacements.map(({ tokenId }) => tokenId)
    return Promise.all([
      holdReplaced(db, replacements),
      schemeTokens.retireOf(db, [...deleted, ...retirements, ...replaced].sort(), now),
      schemeTokens.displace(
        db,
        replacements.flatMap(({ tokenId, fresh, made }) => (fresh || made !== undefined ? tokenId : [])).sort(),
      ),
      schemeTokens.insertAll(
        db,
        [...provisions, ...replacements.flatMap(({ fresh }) => fresh ?? [])].toSorted(byProvision),
      ),
      takeOver(db, replacements, now),
      endLeftovers(db, leftovers, now),
    ])
  },

  /** Reads the intents again under the receipts' locks: from then on only the holder of a lease writes to them. */
  async last(db, effects: readonly ProviderEffect[], now) {
    const compensations = effects.flatMap(effect => effect.compensations ?? [])
    if (compensations.length === 0) return
    const receiptIds = compensations.map(({ receiptId }) => receiptId)
    const found = new Map((await findCompensations(db, receiptIds)).map(one => [one.receiptId, one]))
    for (const one of compensations) {
      const current = found.get(one.receiptId)
      if (!current || !isSameCompensation(one, current))
        throw new LostRace('something was done at a provider meanwhile')
    }
    await recordCompensations(db, compensations, now)
  },
}

function byProvision(a: { provisionId: string }, b: { provisionId: string }): number {
  return a.provisionId < b.provisionId ? -1 : 1
}

/** Locks the current scheme tokens, and finds those that have changed since the decision. */
async function holdReplaced(db: Db, replacements: readonly Replacement[]): Promise<void> {
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
