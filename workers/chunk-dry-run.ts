// A chunk's dry run: the same rules with no effect. What was seen is kept by fingerprint, so that later chunks of the
// run predict duplicates; no token is named, and misses count as guesses, for an oracle is an oracle.
import { refuse } from '../src/errors.ts'
import * as dryRuns from '../src/store/dry-runs.ts'
import * as guesses from '../src/store/guesses.ts'
import type { StoredToken } from '../src/store/tokens.ts'
import * as tokens from '../src/store/tokens.ts'
import { byCard, fingerprintsOf, fold, type PreparedCreate, rejected } from './chunk-creates.ts'
import type { Deps } from './deps.ts'
import type { ChunkContext, Decided } from './token-batch.ts'

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
  const guessed = await guessedDigits(prepared, work.client.clientId, deps)
  const allowed = prepared.filter(one => !guessed.has(digitsOf(one)))
  const { outcomes, folded } = fold(allowed, stored, context)
  const refused = prepared
    .filter(one => guessed.has(digitsOf(one)))
    .map(one => rejected(one, refuse('guesses', one.field)))
  const missed = prepared.filter(({ key }) => folded.has(key) && !stored.has(key))
  return {
    save: async db => {
      const entries = [...folded.values()].flatMap(({ row }) =>
        row.fingerprint ? { fingerprint: row.fingerprint, row: { ...row, fingerprint: null, sealed: null } } : [],
      )
      await dryRuns.saveScratch(db, run, work.request.chunk, entries)
      for (const tokenScope of new Set(missed.map(({ scope }) => scope.tokenScope))) {
        await guesses.add(
          db,
          work.client.clientId,
          tokenScope,
          missed.filter(({ scope }) => scope.tokenScope === tokenScope).map(digitsOf),
        )
      }
      return [...outcomes, ...refused]
    },
  }
}

const digitsOf = ({ facts }: PreparedCreate) => `${facts.bin}${facts.lastFour}`
const runOf = (jti: string) => jti.slice(0, jti.lastIndexOf('-'))

async function guessedDigits(prepared: readonly PreparedCreate[], clientId: string, deps: Deps): Promise<Set<string>> {
  const guessed = new Set<string>()
  for (const tokenScope of new Set(prepared.map(({ scope }) => scope.tokenScope))) {
    const digits = prepared.filter(({ scope }) => scope.tokenScope === tokenScope).map(digitsOf)
    for (const found of await guesses.findAbove(deps.store, clientId, tokenScope, digits, deps.settings.guessesMax))
      guessed.add(found)
  }
  if (guessed.size > 0) deps.metrics.guesses.inc({ mode: 'dry-run' }, guessed.size)
  return guessed
}
