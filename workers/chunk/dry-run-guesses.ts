// The guessing limit of a dry run, which leaves no token behind and so must not answer more often than the limit says:
// the misses before this chunk and those of the chunk itself count together. Real batches leave tokens: guess-limit.ts.

import { type Db, LostRace } from '../../src/store/pool.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import type { CardFacts } from '../../src/token/decide.ts'
import type { Deps } from '../deps.ts'

export interface RehearsedGuesses {
  /** Reads the misses so far for these digits (`digitsOf`), once. To be done before anything is asked of them. */
  load(tokenScope: string, digits: readonly string[]): Promise<void>
  /** No card of these digits may be answered any more: a known one as little as others, or it would be told apart. */
  isSpent(tokenScope: string, digits: string): boolean
  miss(tokenScope: string, digits: string): void
  /** Throws `LostRace` where others' misses have used the limit up meanwhile. */
  save(db: Db): Promise<void>
}

export const digitsOf = ({ bin, lastFour }: Pick<CardFacts, 'bin' | 'lastFour'>): string => `${bin}${lastFour}`

export function openRehearsedGuesses(clientId: string, { store, settings, metrics }: Deps): RehearsedGuesses {
  const known = new Map<string, Map<string, number>>()
  const missed = new Map<string, string[]>()
  const misses = (tokenScope: string, digits: string) => known.get(tokenScope)?.get(digits) ?? 0
  return {
    async load(tokenScope, digits) {
      const loaded = known.get(tokenScope) ?? new Map<string, number>()
      known.set(tokenScope, loaded)
      const unknown = digits.filter(one => !loaded.has(one))
      if (unknown.length === 0) return
      const before = await guesses.count(store, clientId, tokenScope, unknown)
      for (const one of unknown) loaded.set(one, before.get(one) ?? 0)
    },
    isSpent(tokenScope, digits) {
      const isSpent = misses(tokenScope, digits) >= settings.guessesMax
      if (isSpent) metrics.guesses.inc({ mode: 'dry-run' })
      return isSpent
    },
    miss(tokenScope, digits) {
      known.get(tokenScope)?.set(digits, misses(tokenScope, digits) + 1)
      missed.set(tokenScope, [...(missed.get(tokenScope) ?? []), digits])
    },
    async save(db) {
      for (const [tokenScope, digits] of missed) {
        const most = await guesses.add(db, clientId, tokenScope, digits)
        if (most > settings.guessesMax) throw new LostRace('others guessed meanwhile')
      }
    },
  }
}
