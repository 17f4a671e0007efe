// Who creates token after token for the same BIN and last four may be guessing PANs. In a batch that only raises a
// metric, so it is counted in this process, in a small sketch per client, and not in the store.
import { openCache } from '../../src/cache.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { Deps } from '../deps.ts'

const CELLS = 1 << 18
const CLIENTS_MAX = 16
const DAY_MS = 86_400_000

const sketches = openCache<{ cells: Uint16Array; since: number }>({ max: CLIENTS_MAX })

/** Counts the cards that got a new token, and those beyond the limit in the metric. */
export function noteMisses(
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
