// The tracer, made with OpenTelemetry's SDK. It sends spans to a collector by OTLP over HTTP. The file is loaded only
// if a setting turns traces on. Nothing of the SDK is registered globally, so no library can add spans of its own.
import {
  type Context,
  createContextKey,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind as SdkSpanKind,
  type Tracer as SdkTracer,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  type IdGenerator,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { allowed, nameOf, type SpanName } from './attributes.ts'
import type { TraceContext } from './context.ts'
import { EXPORT, openExportQueue } from './export-queue.ts'
import type { TraceMetrics } from './metrics.ts'
import { openSampler } from './sampler.ts'
import type { TracingConfig } from './settings.ts'
import type { Span, SpanKind, SpanOptions, Tracer } from './tracer.ts'

/** The process that the spans come from. */
export interface TracedProcess {
  role: string
  /** A name that differs for each process of a role on a host: `bulk-0`. */
  name: string
  version: string
}

const CLOSE_MS = 3_000
/** Higher than any span of tokenmill needs. */
const LIMITS = { attributeCountLimit: 32, attributeValueLengthLimit: 128, eventCountLimit: 0, linkCountLimit: 128 }
/**
 * Marks a parent that doesn't belong to a process of tokenmill: the sampler then decides anew whether the trace is
 * recorded.
 */
const FOREIGN = createContextKey('foreign parent')

const KINDS: Record<SpanKind, SdkSpanKind> = {
  server: SdkSpanKind.SERVER,
  client: SdkSpanKind.CLIENT,
  producer: SdkSpanKind.PRODUCER,
  consumer: SdkSpanKind.CONSUMER,
}

export function openTracer(config: TracingConfig, process: TracedProcess, metrics: TraceMetrics): Tracer {
  const exporter = new OTLPTraceExporter({
    url: config.url,
    headers: config.headers,
    timeoutMillis: EXPORT.timeoutMs,
    // At its end a process sends all waiting batches at once. With a limit of 1 each batch that follows directly on
    // another would be refused.
    concurrencyLimit: EXPORT.queueMax / EXPORT.batchMax + 2,
  })
  const ids = openIds()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      ...config.resource,
      'service.name': config.serviceName,
      'service.version': process.version,
      'service.instance.id': process.name,
      'service.role': process.role,
    }),
    sampler: samplerOf(config),
    spanLimits: LIMITS,
    idGenerator: ids,
    spanProcessors: [openExportQueue(exporter, metrics)],
  })
  const sdk = provider.getTracer('tokenmill', process.version)
  return {
    start: (name, { parent, isOurs = false, links = [], at, begunAt, ...options } = {}) => {
      const before = parent ? trace.setSpanContext(ROOT_CONTEXT, sdkContextOf(parent)) : ROOT_CONTEXT
      const context = parent && !isOurs ? before.setValue(FOREIGN, true) : before
      const linked = links.map(link => ({ context: sdkContextOf(link) }))
      return ids.at(at, () => begin(sdk, name, { ...options, links: linked, startTime: begunAt }, context))
    },
    async close() {
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, CLOSE_MS)
      await Promise.race([provider.shutdown().catch(() => {}), late.promise])
      clearTimeout(timer)
    },
  }
}

/** Makes random ids, except for a span whose ids are known beforehand. */
function openIds(): IdGenerator & { at<T>(place: TraceContext | undefined, start: () => T): T } {
  const random = new RandomIdGenerator()
  let known: TraceContext | undefined
  return {
    generateTraceId: () => known?.traceId ?? random.generateTraceId(),
    generateSpanId: () => known?.spanId ?? random.generateSpanId(),
    at(place, start) {
      known = place
      try {
        return start()
      } finally {
        known = undefined
      }
    },
  }
}

/**
 * A span with a parent in this process, or in another process of tokenmill, is recorded if its parent is. Whether any
 * other span is recorded depends on the share of traces and on the limit per second.
 */
function samplerOf({ ratio, perSecond }: TracingConfig): Sampler {
  const isTaken = openSampler({ ratio, perSecond, clock: () => performance.now() })
  const taken = { decision: SamplingDecision.RECORD_AND_SAMPLED }
  const left = { decision: SamplingDecision.NOT_RECORD }
  return {
    shouldSample(context, traceId) {
      const parent = trace.getSpanContext(context)
      const isDecided = parent !== undefined && context.getValue(FOREIGN) !== true
      const isSampled = isDecided ? (parent.traceFlags & TraceFlags.SAMPLED) !== 0 : isTaken(traceId)
      return isSampled ? taken : left
    },
    toString: () => 'tokenmill',
  }
}

function sdkContextOf({ traceId, spanId, sampled }: TraceContext): SpanContext {
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true }
}

interface Beginning extends SpanOptions {
  links?: { context: SpanContext }[]
  startTime?: number | undefined
}

function begin(
  sdk: SdkTracer,
  name: SpanName,
  { kind, attributes = {}, links, startTime }: Beginning,
  parent: Context,
): Span {
  const span = sdk.startSpan(
    nameOf(name),
    {
      kind: kind ? KINDS[kind] : SdkSpanKind.INTERNAL,
      attributes: allowed(attributes),
      ...(links ? { links } : {}),
      ...(startTime === undefined ? {} : { startTime }),
    },
    parent,
  )
  const { traceId, spanId, traceFlags } = span.spanContext()
  const own = trace.setSpan(ROOT_CONTEXT, span)
  return {
    context: { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
    child: (childName, options = {}) => begin(sdk, childName, options, own),
    set: added => {
      if (span.isRecording()) span.setAttributes(allowed(added))
    },
    end: fault => end(span, fault),
  }
}

/** Ends the span. Only the code of a fault is recorded: the text of an exception may quote its input. */
function end(span: SdkSpan, fault: string | undefined): void {
  if (!span.isRecording()) return
  if (fault !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR })
    span.setAttributes(allowed({ 'error.type': fault }))
  }
  span.end()
}
