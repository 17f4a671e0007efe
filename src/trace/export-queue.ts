// The way of ended spans to the collector: a bounded queue and one sender. A span that finds the queue full, or whose
// sending fails, is dropped and counted; whoever ended it never waits and never learns of it.
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace'
import type { TraceMetrics } from './metrics.ts'

const EXPORTED = 0

export const EXPORT = {
  queueMax: 2_048,
  batchMax: 512,
  everyMs: 1_000,
  timeoutMs: 5_000,
} as const

/** The library's processor drops what is too much by itself, and tells nobody how much: so that is counted before it. */
export function openExportQueue(exporter: SpanExporter, { dropped }: TraceMetrics): SpanProcessor {
  let waiting = 0
  const counting: SpanExporter = {
    export(spans: ReadableSpan[], done) {
      waiting -= spans.length
      exporter.export(spans, result => {
        if (result.code !== EXPORTED) dropped.inc({ reason: 'export_failed' }, spans.length)
        // A failure is counted and no more: the library would report it to a handler of its own.
        done({ code: EXPORTED })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  const processor = new BatchSpanProcessor({
    exporter: counting,
    // The exporter has its own end, which is earlier.
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
