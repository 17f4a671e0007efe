// The interface of tracing for the rest of the product. If tracing is off, there is no tracer and no span, so nothing
// is made or called: `deps.span?.child('decide')`. otel.ts implements it with OpenTelemetry's packages, and is loaded
// only if tracing is on.
import type { Attributes, SpanName } from './attributes.ts'
import type { TraceContext } from './context.ts'

export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

export interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
}

export interface StartOptions extends SpanOptions {
  /** The parent span, in another process. */
  parent?: TraceContext | undefined
  /**
   * The parent belongs to a process of tokenmill: the span is recorded if its parent is. The decision of any other
   * parent isn't.
   */
  isOurs?: boolean
  links?: readonly TraceContext[]
  /** The span's own position, if others computed it beforehand; undefined: new ids are made. */
  at?: TraceContext
  /** When the span began, ms since the epoch; undefined: now. */
  begunAt?: number
}

export interface Span {
  readonly context: TraceContext
  child(name: SpanName, options?: SpanOptions): Span
  set(attributes: Attributes): void
  /** Ends the span; only the first call counts. With the code of a fault the span ends as failed. */
  end(fault?: string): void
}

export interface Tracer {
  start(name: SpanName, options?: StartOptions): Span
  /** Sends the remaining spans, which takes a few seconds at most. Never throws. */
  close(): Promise<void>
}

/** Runs `work`, then ends `span`; if `work` throws, with the error's code. If there is no span, just runs `work`. */
export async function within<T>(
  span: Span | undefined,
  work: () => Promise<T>,
  codeOf: (error: unknown) => string,
): Promise<T> {
  if (!span) return work()
  try {
    const result = await work()
    span.end()
    return result
  } catch (error) {
    span.end(codeOf(error))
    throw error
  }
}
