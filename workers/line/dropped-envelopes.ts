// Counts dropped envelopes, and logs them seldom: a stranger who can write to the queue must not be able to fill the log.
import type { Drop } from '../../src/job/envelope/envelope.ts'
import type { Deps } from '../deps.ts'

const LOG_MS = 10_000

const loggedAt = new Map<Drop, number>()

export function countDropped(
  reason: Drop,
  { metrics, log, clock }: Pick<Deps, 'metrics' | 'log' | 'clock'>,
  count = 1,
): void {
  metrics.refusedEnvelopes.inc({ reason }, count)
  if (clock() - (loggedAt.get(reason) ?? 0) < LOG_MS) return
  loggedAt.set(reason, clock())
  log.warn({ reason }, 'envelopes are dropped; the counter tells how many')
}
