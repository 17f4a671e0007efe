// A chunk's dry run: the same rules, but no tokens are written. Cards are stored by fingerprint for the time of the
// run, so that later chunks of it predict duplicates. No token is named. Misses count as guesses, because a dry run
// also tells which cards have a token.
import { refuse } from '../../src/errors.ts'
import * as dryRuns from '../../src/store/batch/dry-runs.ts'
import * as references from '../../src/store/reference/source-references.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { findByCards } from '../card/by-card.ts'
import { guessOf } from '../card/guess-limit.ts'
import type { Deps } from '../deps.ts'
import { writeEffects } from '../effect/write-effect.ts'
import { withFormer } from './batch.ts'
import type { ChunkContext } from './chunk.ts'
import { ownersOf } from './claims.ts'
import { cardsOf, type DecidedCreates } from './create/creates.ts'
import { type DryRunGuesses, openDryRunGuesses } from './dry-run-guesses.ts'
import { fold, type PreparedCreate, rejected } from './fold.ts'
import { openOlderClaims } from './older-claims.ts'
import { openRelinks } from './relinks.ts'
import { predictClaims } from './save-claims.ts'

export async function decideDryRun(
  prepared: readonly PreparedCreate[],
  begun: ChunkContext,
  deps: Deps,
): Promise<DecidedCreates> {
  if (prepared.length === 0) return { save: async () => ({ outcomes: [], created: undefined }) }
  const stored = await findByCards(deps.store, cardsOf(prepared))
  const { work } = begun
  const run = runOf(work.claims.jti)
  const prints = await pinnedPrints(run, prepared, deps)
  const seen = await dryRuns.findScratch(deps.store, run, work.request.chunk, [...prints.values()])
  for (const { key, facts } of prepared) {
    const row = seen.get(prints.get(key) ?? '')
    if (row) stored.set(key, { ...row, givenAt: row.givenAt ?? null, cards: facts.fingerprints.kept, sealed: null })
  }
  const guesses = openDryRunGuesses(deps)
  const { allowed, refused } = await withinLimit(prepared, stored, guesses, work.client.clientId)
  const known = await references.findByOwners(deps.store, ownersOf(allowed))
  const context = await withFormer({ stored, known }, begun, deps)
  const older = await openOlderClaims(allowed, { stored, known }, context, deps)
  const relinks = await openRelinks(stored, known, context, deps)
  const { outcomes, folded } = fold(allowed, stored, context, { relinks, older })
  predictClaims(outcomes, known, context)
  const entries = [...folded].flatMap(([key, { row }]) => {
    const fp = prints.get(key)
    return fp === undefined ? [] : { fp, row: scratchOf(row), isSeen: seen.has(fp) }
  })
  return {
    save: async db => {
      // In another phase a card might be known under a version that wasn't looked for, and would be counted as a miss.
      for (const turn of new Set(prepared.map(({ facts }) => facts.fingerprints.turn)))
        await cardPhases.assertTurn(db, turn)
      await dryRuns.saveScratch(db, run, work.request.chunk, entries)
      await writeEffects(db, [guesses.effect()], deps)
      const beyond = refused.map(one => rejected(one, refuse('guesses', one.field)))
      return { outcomes: [...outcomes, ...beyond], created: undefined }
    },
  }
}

/** The fingerprints by which the dry run knows the cards, by card: all under one version, also after a rotation of the key. */
async function pinnedPrints(
  run: string,
  prepared: readonly PreparedCreate[],
  { store, ring }: Pick<Deps, 'store' | 'ring'>,
): Promise<ReadonlyMap<string, string>> {
  const version = await dryRuns.pinVersion(store, run, ring.cardPhase().writes[0] ?? 1)
  return new Map(
    prepared.map(({ key, facts, pan, scope, contract }) => {
      const isFirst = facts.fingerprints.versions[0] === version
      return [key, isFirst ? key : ring.fingerprintBy(pan, contract?.place ?? scope.tokenScope, version)]
    }),
  )
}

function scratchOf(token: StoredToken): dryRuns.ScratchRow {
  const { cards: _, storedCards: __, link: ___, sealed: ____, ...row } = token
  return row
}

/**
 * Divides the records, in file order. The first record of a card is refused once the misses of its digits have reached
 * the limit; each record after an allowed one of the same card is allowed.
 */
async function withinLimit(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  guesses: DryRunGuesses,
  clientId: string,
): Promise<{ allowed: PreparedCreate[]; refused: PreparedCreate[] }> {
  await guesses.load(prepared.map(({ scope, facts }) => guessOf(clientId, scope.tokenScope, facts)))
  const asked = new Set<string>()
  const allowed: PreparedCreate[] = []
  const refused: PreparedCreate[] = []
  for (const one of prepared) {
    const { scope, facts, key } = one
    const guess = guessOf(clientId, scope.tokenScope, facts)
    const isFirst = !asked.has(key)
    if (isFirst && guesses.isSpent(guess)) {
      refused.push(one)
      continue
    }
    allowed.push(one)
    asked.add(key)
    if (isFirst && !stored.has(key)) guesses.miss(guess)
  }
  return { allowed, refused }
}

const runOf = (jti: string) => jti.slice(0, jti.lastIndexOf('-'))
