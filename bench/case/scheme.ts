// Cases of scheme tokens, (h) and (i): how much of a granted rate a batch uses, and how long single jobs wait beside it.
import type { Line } from '../line.ts'
import { runSchemeBatch, type SchemeRunOptions } from '../scheme-batch.ts'
import type { Asked } from './asked.ts'

const RATE = 200
const CARDS_MAX = 10_000

/** (h). */
export const schemeTokens = (asked: Asked) => measure('h: scheme tokens', asked, 2)

/** (i). */
export const schemeTokensOneBusy = (asked: Asked) => measure('i: scheme tokens, one process busy', asked, 1)

async function measure(name: string, { place, engine, rows }: Asked, busy: SchemeRunOptions['busy']): Promise<Line[]> {
  const cards = Math.min(rows, CARDS_MAX)
  const run = await runSchemeBatch(place, engine, { cards, rate: RATE, latencyMs: 20, busy })
  const { seconds, callsPerSecond, used, turnedAway, interactive, others, cardsWithSeveralTokens } = run
  const { jobs, p50, p99, most } = interactive
  return [
    {
      case: name,
      engine,
      rows: cards,
      perSecond: callsPerSecond,
      limit: 'calls of the granted rate',
      limitPerSecond: RATE,
      ratio: used,
      p50,
      p99,
      jobs,
      most,
      seconds,
      turnedAway,
      others,
      cardsWithSeveralTokens,
    },
  ]
}
