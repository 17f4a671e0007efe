// A chunk's dry run: the same rules with no effect. What was seen is kept by fingerprint, so that later chunks of the
// run predict duplicates; no token is named, and misses count as guesses, for an oracle is an oracle.
import { refuse } from '../../src/errors.ts'
import * as dryRuns from '../../src/store/batch/dry-runs.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Deps } from '../deps.ts'
import type { ChunkContext, Decided } from './chunk.ts'
import { byCard, fingerprintsOf } from './creates.ts'
import { digitsOf, openRehearsedGuesses, type RehearsedGuesses } from './dry-run-guesses.ts'
import { fold, type PreparedCreate, rejected } from './fold.ts'

export async function decideDryRun(
  prepared: readonly PreparedCreate[],
  context: ChunkContext,
  deps: Deps,
): Promise<Decided> {
  if (prepared.length === 0) return { save: async () => [] }
  const stored = byCard(await tokens.findByFingerprints(deps.store, fingerprintsOf(prepared)))
  const { work } = context
  const run = runOf(work.claims.jti)
  const seen = await dryRuns.findScratch(deps.store, run, work.request.chunk, fingerprintsOf(prepared))
  for (const { key, facts } of prepared) {
    const row = seen.get(facts.fingerprint.toString('hex'))
    if (row) stored.set(key, { ...(row as StoredToken), fingerprint: facts.fingerprint })
  }
  const tries = openRehearsedGuesses(work.client.clientId, deps)
  const { allowed, refused } = await withinLimit(prepared, stored, tries)
  const { outcomes, folded } = fold(allowed, stored, context)
  return {
    save: async db => {
      const entries = [...folded.values()].flatMap(({ row }) =>
        row.fingerprint
          ? {
              fingerprint: row.fingerprint,
              row: { ...row, fingerprint: null, sealed: null },
              isSeen: seen.has(row.fingerprint.toString('hex')),
            }
          : [],
      )
      await dryRuns.saveScratch(db, run, work.request.chunk, entries)
      await tries.save(db)
      return [...outcomes, ...refused.map(one => rejected(one, refuse('guesses', one.field)))]
    },
  }
}

/** In file order, until the digits have had their misses. */
async function withinLimit(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  tries: RehearsedGuesses,
): Promise<{ allowed: PreparedCreate[]; refused: PreparedCreate[] }> {
  for (const [tokenScope, some] of Map.groupBy(prepared, ({ scope }) => scope.tokenScope))
    await tries.load(tokenScope, [...new Set(some.map(({ facts }) => digitsOf(facts)))])
  const asked = new Set<string>()
  const allowed: PreparedCreate[] = []
  const refused: PreparedCreate[] = []
  for (const one of prepared) {
    const { scope, facts, key } = one
    const digits = digitsOf(facts)
    const isFirst = !asked.has(key)
    if (isFirst && tries.isSpent(scope.tokenScope, digits)) {
      refused.push(one)
      continue
    }
    allowed.push(one)
    asked.add(key)
    if (isFirst && !stored.has(key)) tries.miss(scope.tokenScope, digits)
  }
  return { allowed, refused }
}

const runOf = (jti: string) => jti.slice(0, jti.lastIndexOf('-'))
