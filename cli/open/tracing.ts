// Opens the traces of a process, if a setting turns them on. Only then OpenTelemetry's packages are loaded.
import type { MetricsRegistry } from '../../src/metrics.ts'
import { openTraceMetrics } from '../../src/trace/metrics.ts'
import { tracingOf } from '../../src/trace/settings.ts'
import type { Tracer } from '../../src/trace/tracer.ts'
import { readVersion } from '../../src/version.ts'
import type { Session } from './open.ts'

/** Opens traces. Call it before opening what makes spans, because the lifetime closes in reverse order. */
export async function openTracing(
  { config, lifetime, log }: Pick<Session, 'config' | 'lifetime' | 'log'>,
  registry: MetricsRegistry,
  { role, name = role }: { role: string; name?: string },
): Promise<Tracer | undefined> {
  const tracing = tracingOf(config.otel, flaw =>
    log.warn({ flaw }, 'traces are off: a setting of them can not be obeyed'),
  )
  if (!tracing) return undefined
  const { openTracer } = await import('../../src/trace/otel.ts')
  const tracer = openTracer(tracing, { role, name, version: readVersion() }, openTraceMetrics(registry))
  lifetime.onClose('traces', tracer.close)
  return tracer
}
