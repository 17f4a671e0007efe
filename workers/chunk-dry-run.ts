// A chunk's dry run: the same rules with no effect. What was seen is kept by fingerprint, so that later chunks of the
// run predict duplicates; no token is named, and misses count as guesses, for an oracle is an oracle.
import { refuse } from '../src/errors.ts'
import * as dryRuns from '../src/store/dry-runs.ts'
import * as guesses from '../src/store/guesses.ts'
import { LostRace } from '../src/store/pool.ts'
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
  const { allowed, refused, missed } = await withinLimit(prepared, stored, work.client.clientId, deps)
  const { outcomes, folded } = fold(allowed, stored, context)
  return {
    save: async db => {
      const entries = [...folded.values()].flatMap(({ row }) =>
        row.fingerprint ? { fingerprint: row.fingerprint, row: { ...row, fingerprint: null, sealed: null } } : [],
      )
      await dryRuns.saveScratch(db, run, work.request.chunk, entries)
      for (const [tokenScope, digits] of missed) {
        const most = await guesses.add(db, work.client.clientId, tokenScope, digits)
        if (most > deps.settings.guessesMax) throw new LostRace('others guessed meanwhile')
      }
      return [...outcomes, ...refused.map(one => rejected(one, refuse('guesses', one.field)))]
    },
  }
}

interface Limited {
  allowed: PreparedCreate[]
  /** Known cards as well as unknown ones: what is told apart is what the limit is there to hide. */
  refused: PreparedCreate[]
  /** BIN and last four of each unknown card that is answered, by scope. */
  missed: Map<string, string[]>
}

/** In file order, until the digits have had their misses: those before, and those of this very chunk. */
async function withinLimit(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  clientId: string,
  { store, settings, metrics }: Deps,
): Promise<Limited> {
  const limited: Limited = { allowed: [], refused: [], missed: new Map() }
  const asked = new Set<string>()
  for (const [tokenScope, some] of Map.groupBy(prepared, ({ scope }) => scope.tokenScope)) {
    const misses = await guesses.count(store, clientId, tokenScope, [...new Set(some.map(digitsOf))])
    const missed: string[] = []
    for (const one of some) {
      const digits = digitsOf(one)
      const before = misses.get(digits) ?? 0
      if (before >= settings.guessesMax && !asked.has(one.key)) {
        limited.refused.push(one)
        continue
      }
      limited.allowed.push(one)
      if (stored.has(one.key) || asked.has(one.key)) continue
      asked.add(one.key)
      misses.set(digits, before + 1)
      missed.push(digits)
    }
    if (missed.length > 0) limited.missed.set(tokenScope, missed)
  }
  if (limited.refused.length > 0) metrics.guesses.inc({ mode: 'dry-run' }, limited.refused.length)
  // Rules are applied in file order across scopes too.
  limited.allowed.sort((a, b) => a.line - b.line)
  return limited
}

const digitsOf = ({ facts }: PreparedCreate) => `${facts.bin}${facts.lastFour}`
const runOf = (jti: string) => jti.slice(0, jti.lastIndexOf('-'))
