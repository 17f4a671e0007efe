// A client that creates token after token for the same BIN and last four may be guessing PANs. A single job is refused
// beyond a limit that the store counts. A batch only raises a metric, so its misses are counted in this process, in a
// small sketch per client, and not in the store.
import { openCache } from '../../src/cache.ts'
import { type Refusal, refuse } from '../../src/errors.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { CardFacts } from '../../src/token/decide.ts'
import type { Deps } from '../deps.ts'

export function guessOf(
  clientId: string,
  tokenScope: string,
  { bin, lastFour }: Pick<CardFacts, 'bin' | 'lastFour'>,
): guesses.Guess {
  return { clientId, tokenScope, digits: `${bin}${lastFour}` }
}

/** Beyond the limit a known card is refused like others: otherwise the client could tell them apart. */
export async function guessRefusal(
  guess: guesses.Guess,
  field: string,
  { store, settings, metrics }: Pick<Deps, 'store' | 'settings' | 'metrics'>,
): Promise<Refusal | undefined> {
  const [misses = 0] = await guesses.countAll(store, [guess])
  if (misses < settings.guessesMax) return undefined
  metrics.guesses.inc({ mode: 'interactive' })
  return refuse('guesses', field)
}

const CELLS = 1 << 18
const CLIENTS_MAX = 16
const DAY_MS = 86_400_000

const sketches = openCache<{ cells: Uint16Array; since: number }>({ max: CLIENTS_MAX })

/** Counts the cards that got a new token, and those beyond the limit in the metric. */
export function countMisses(
  clientId: string,
  created: readonly StoredToken[],
  { clock, metrics, settings }: Pick<Deps, 'clock' | 'metrics' | 'settings'>,
): void {
  let sketch = sketches.get(clientId)
  if (!sketch || clock() - sketch.since > DAY_MS) {
    sketch = { cells: new Uint16Array(CELLS), since: clock() }
    sketches.set(clientId, sketch)
  }
  let beyond = 0
  for (const { bin, lastFour } of created) {
    // Two groups of digits that share a cell raise the metric early, never late.
    const cell = (Number(bin) * 10_007 + Number(lastFour)) % CELLS
    const misses = Math.min((sketch.cells[cell] ?? 0) + 1, 65_535)
    sketch.cells[cell] = misses
    if (misses > settings.guessesMax) beyond += 1
  }
  if (beyond > 0) metrics.guesses.inc({ mode: 'batch' }, beyond)
}
