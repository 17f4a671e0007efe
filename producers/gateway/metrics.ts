// The metrics of the HTTP roles: those of any HTTP server, and those of the gateway. The 3-D Secure service adds its own
// (three-ds/metrics.ts).
import { REVERSAL_STATUSES } from '../../src/job/problem.ts'
import type { MetricsRegistry } from '../../src/metrics.ts'
import { openUngrantedCounter } from '../../src/vault/ring/ungranted.ts'

export type HttpMetrics = ReturnType<typeof openHttpMetrics>
export type GatewayMetrics = ReturnType<typeof openGatewayMetrics>

export function openHttpMetrics({ gauge, histogram }: MetricsRegistry) {
  return {
    httpSeconds: histogram('http_request_seconds', 'Duration of an HTTP request.', {
      method: [],
      route: [],
      status: [],
    }),
    inFlight: gauge('http_operations', 'Operations under way, and reversals that the queue has not taken yet.'),
  }
}

export function openGatewayMetrics(registry: MetricsRegistry, kinds: readonly string[]) {
  const { counter, histogram } = registry
  return {
    ...openHttpMetrics(registry),
    ungranted: openUngrantedCounter(registry),
    waits: histogram('gateway_wait_seconds', 'From acceptance over HTTP to the end of the work.', { kind: kinds }),
    answers: histogram('gateway_answer_seconds', 'From acceptance over HTTP to the answer.', { kind: kinds }),
    timeouts: counter('gateway_timeouts_total', 'Operations over HTTP that were not answered in time.', {
      kind: kinds,
      reversal_status: REVERSAL_STATUSES,
    }),
    deprecatedCalls: counter('deprecated_calls_total', 'Calls of operations that will be removed.', {
      operation: ['listOrderCreators'],
    }),
  }
}
