// A client that creates token after token for the same BIN and last four may be guessing PANs. A single job is refused
// beyond a limit that the store counts. A batch only increases a metric. Its misses are counted approximately, in the
// memory of this process, for the clients that were seen last.
import { openCache } from '../../src/cache.ts'
import { type Refusal, refuse } from '../../src/errors.ts'
import type { CreatedRecords } from '../../src/job/answer/created-columns.ts'
import type * as guesses from '../../src/store/token/guesses.ts'
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

/**
 * The refusal beyond the limit. A card that has a token is refused, too: otherwise the client could tell such cards
 * from others.
 */
export async function guessRefusal(
  guess: guesses.Guess,
  field: string,
  { lookUps, settings, metrics }: Pick<Deps, 'lookUps' | 'settings' | 'metrics'>,
): Promise<Refusal | undefined> {
  if ((await lookUps.misses(guess)) < settings.guessesMax) return undefined
  metrics.guesses.inc({ mode: 'interactive' })
  return refuse('guesses', field)
}

const CELLS = 1 << 18
const CLIENTS_MAX = 16
const DAY_MS = 86_400_000

const sketches = openCache<{ cells: Uint16Array; since: number }>({ max: CLIENTS_MAX })

/** Counts the cards that got a new token, and in the metric those beyond the limit. `columns`: further cards. */
export function countMisses(
  clientId: string,
  created: readonly Pick<StoredToken, 'bin' | 'lastFour'>[],
  { clock, metrics, settings }: Pick<Deps, 'clock' | 'metrics' | 'settings'>,
  columns?: Pick<CreatedRecords, 'bins' | 'lastFours' | 'byLine'>,
): void {
  let sketch = sketches.get(clientId)
  if (!sketch || clock() - sketch.since > DAY_MS) {
    sketch = { cells: new Uint16Array(CELLS), since: clock() }
    sketches.set(clientId, sketch)
  }
  const { cells } = sketch
  let beyond = 0
  const count = (bin: string | null, lastFour: string | null | undefined) => {
    // Different digits may share a cell. Then the metric increases too early.
    const cell = (Number(bin) * 10_007 + Number(lastFour)) % CELLS
    const misses = Math.min((cells[cell] ?? 0) + 1, 65_535)
    cells[cell] = misses
    if (misses > settings.guessesMax) beyond += 1
  }
  for (const { bin, lastFour } of created) count(bin, lastFour)
  if (columns) for (const at of columns.byLine) count(columns.bins[at] ?? '', columns.lastFours[at])
  if (beyond > 0) metrics.guesses.inc({ mode: 'batch' }, beyond)
}
