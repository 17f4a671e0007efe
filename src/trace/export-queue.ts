// The queue of ended spans for the collector: bounded, with one sender. A span is dropped and counted if the queue is
// full or sending fails. The code that ends a span never waits and doesn't learn whether it was sent.
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace'
import type { TraceMetrics } from './metrics.ts'

const EXPORTED = 0

export const EXPORT = {
  queueMax: 2_048,
  batchMax: 512,
  everyMs: 1_000,
  timeoutMs: 5_000,
} as const

/**
 * The library's processor drops spans when its queue is full, without telling how many; so they are counted before it.
 */
export function openExportQueue(exporter: SpanExporter, { dropped }: TraceMetrics): SpanProcessor {
  let waiting = 0
  const counting: SpanExporter = {
    export(spans: ReadableSpan[], done) {
      waiting -= spans.length
      exporter.export(spans, result => {
        if (result.code !== EXPORTED) dropped.inc({ reason: 'export_failed' }, spans.length)
        // A failure is counted here and not passed on: the library would report it to its own error handler.
        done({ code: EXPORTED })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  const processor = new BatchSpanProcessor({
    exporter: counting,
    // The exporter has its own time limit, which is shorter.
    exportTimeoutMillis: 2 * EXPORT.timeoutMs,
    maxQueueSize: EXPORT.queueMax,
    maxExportBatchSize: EXPORT.batchMax,
    scheduledDelayMillis: EXPORT.everyMs,
  })
  return {
    onStart() {},
    onEnd(span) {
      if (waiting >= EXPORT.queueMax) return dropped.inc({ reason: 'queue_full' })
      waiting += 1
      processor.onEnd(span)
    },
    forceFlush: () => processor.forceFlush(),
    shutdown: () => processor.shutdown(),
  }
}
