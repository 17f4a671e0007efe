// The console's metrics.
import type { MetricsRegistry } from '../../src/metrics.ts'

export type ConsoleMetrics = ReturnType<typeof openConsoleMetrics>

export function openConsoleMetrics({ counter, histogram }: MetricsRegistry) {
  return {
    httpSeconds: histogram('http_request_seconds', 'Duration of an HTTP request.', {
      method: [],
      route: [],
      status: [],
    }),
    signIns: counter('console_sign_ins_total', 'Attempts to sign in to the console.', {
      outcome: ['signed_in', 'refused', 'too_many'],
    }),
  }
}
