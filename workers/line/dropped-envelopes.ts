// Says that envelopes are dropped, but seldom: whoever can write to the queue must not be able to fill the log.
import type { Drop } from '../../src/job/envelope/envelope.ts'
import type { Deps } from '../deps.ts'

const SAMPLE_MS = 10_000

const saidAt = new Map<Drop, number>()

export function noteDrop(
  reason: Drop,
  { metrics, log, clock }: Pick<Deps, 'metrics' | 'log' | 'clock'>,
  count = 1,
): void {
  metrics.refusedEnvelopes.inc({ reason }, count)
  if (clock() - (saidAt.get(reason) ?? 0) < SAMPLE_MS) return
  saidAt.set(reason, clock())
  log.warn({ reason }, 'envelopes are dropped; the counter tells how many')
}
