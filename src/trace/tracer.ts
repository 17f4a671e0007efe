// What the rest of the product knows of tracing. Where it is off there is no tracer and no span, so that nothing is made
// and nothing is called: `deps.span?.child('decide')`. The packages are behind otel.ts, which is loaded where it is on.
import type { Attributes, SpanName } from './attributes.ts'
import type { TraceContext } from './context.ts'

export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

export interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
}

export interface StartOptions extends SpanOptions {
  /** The span before it, in another process. */
  parent?: TraceContext | undefined
  /** The parent is of a process of ours, whose decision to record holds; anybody else's doesn't. */
  isOurs?: boolean
  links?: readonly TraceContext[]
  /** Its own place, which others know beforehand; without it the span gets ids of its own. */
  at?: TraceContext
  /** ms since the epoch; without it, now. */
  begunAt?: number
}

export interface Span {
  readonly context: TraceContext
  child(name: SpanName, options?: SpanOptions): Span
  set(attributes: Attributes): void
  /** The first time counts; with the code of a fault it ended badly. */
  end(fault?: string): void
}

export interface Tracer {
  start(name: SpanName, options?: StartOptions): Span
  /** Sends what is left, for a few seconds at most. Never throws. */
  close(): Promise<void>
}

/** Runs `work` in a span, which ends with it. Without a span there is nothing but the work. */
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
