// The metrics of the 3-D Secure service, beside those of any HTTP server.
import type { MetricsRegistry } from '../../../src/metrics.ts'
import type { FinalOutcome } from '../../../src/three-ds/outcome.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { openHttpMetrics } from '../metrics.ts'

export type ThreeDsMetrics = ReturnType<typeof openThreeDsMetrics>

const OUTCOMES: readonly FinalOutcome[] = ['Y', 'A', 'N', 'U', 'R']
const ANSWERS = ['answered', 'refused', 'malformed', 'unreachable', 'unknown'] as const

export function openThreeDsMetrics(registry: MetricsRegistry) {
  const { counter, histogram } = registry
  return {
    ...openHttpMetrics(registry),
    ungranted: openUngrantedCounter(registry),
    ended: counter('three_ds_ended_total', 'Authentications that ended.', { outcome: OUTCOMES }),
    directorySeconds: histogram('three_ds_directory_seconds', 'Response time of directory servers.', {
      answer: ANSWERS,
    }),
  }
}
