// The guess limit of a dry run. A dry run leaves no token behind, so it must not answer more often than the limit
// allows: the misses before this chunk and those of the chunk count together. Other batches leave tokens; their misses
// only increase a metric (card/guess-limit.ts).
import type { Guess } from '../../src/store/token/guesses.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../effect/effect.ts'

export interface DryRunGuesses {
  /** Reads the misses so far, once for each guess; to be called before the other functions. */
  load(wanted: readonly Guess[]): Promise<void>
  /**
   * Whether no card with these digits may be answered any more, whether it has a token or not: otherwise the client
   * could tell such cards apart.
   */
  isSpent(guess: Guess): boolean
  /** Whether the misses of these digits may reach the limit if all that `load` was asked for miss. */
  isNear(guess: Guess): boolean
  miss(guess: Guess): void
  /** The misses of this chunk. */
  effect(): Effect
}

export function openDryRunGuesses({ store, settings, metrics }: Deps): DryRunGuesses {
  const { guessesMax } = settings
  const loaded = new Map<string, number>()
  const wantedOf = new Map<string, number>()
  const missed: Guess[] = []
  const missesOf = (guess: Guess) => loaded.get(keyOf(guess)) ?? 0
  return {
    async load(wanted) {
      for (const guess of wanted) wantedOf.set(keyOf(guess), (wantedOf.get(keyOf(guess)) ?? 0) + 1)
      const unknown = wanted.filter(guess => !loaded.has(keyOf(guess)))
      const misses = await guesses.countAll(store, unknown)
      for (const [index, guess] of unknown.entries()) loaded.set(keyOf(guess), misses[index] ?? 0)
    },
    isSpent(guess) {
      const isSpent = missesOf(guess) >= guessesMax
      if (isSpent) metrics.guesses.inc({ mode: 'dry-run' })
      return isSpent
    },
    isNear: guess => missesOf(guess) + (wantedOf.get(keyOf(guess)) ?? 0) >= guessesMax,
    miss(guess) {
      loaded.set(keyOf(guess), missesOf(guess) + 1)
      missed.push(guess)
    },
    effect: () => ({ misses: missed.map(guess => ({ ...guess, missesMax: guessesMax })) }),
  }
}

const keyOf = ({ clientId, tokenScope, digits }: Guess) => `${clientId} ${tokenScope} ${digits}`

/** Always false if the chunk isn't a dry run. */
export async function isSpent(guess: Guess, guesses: DryRunGuesses | undefined): Promise<boolean> {
  await guesses?.load([guess])
  return guesses?.isSpent(guess) === true
}
