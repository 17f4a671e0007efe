// The metric of tracing: how many spans were dropped on the way to the collector. It exists only if traces are on.
import type { MetricsRegistry } from '../metrics.ts'

export type TraceMetrics = ReturnType<typeof openTraceMetrics>

export function openTraceMetrics({ counter }: MetricsRegistry) {
  return {
    dropped: counter('trace_spans_dropped_total', 'Spans that were not told to the collector.', {
      reason: ['queue_full', 'export_failed'],
    }),
  }
}
