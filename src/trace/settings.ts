// What OpenTelemetry's settings come to, by its own rules: whether there are traces, and where they go. Read from the
// environment by src/config.ts, as all settings are.
import { ConfigError, type OtelSettings } from '../config.ts'

/** Where spans are told, and which. */
export interface TracingConfig {
  url: string
  /** Secrets: they may hold the collector's API key. */
  headers: Record<string, string>
  serviceName: string
  /** What is said of the process beside its role and release. */
  resource: Record<string, string>
  ratio: number
  perSecond: number
}

const COLLECTOR = 'http://localhost:4318'

const PROTOCOL = 'http/protobuf'

/**
 * Undefined where nothing turns traces on, or something turns them off. What is said of traces alone goes first. Throws
 * `ConfigError` for what can't be obeyed, which a process without traces needn't obey.
 */
export function tracingOf(settings: OtelSettings): TracingConfig | undefined {
  const { disabled, exporter, endpoint, tracesEndpoint, headers, resource } = settings
  const isNamed = exporter !== undefined || endpoint !== undefined || tracesEndpoint !== undefined
  if (disabled || exporter === 'none' || !isNamed) return undefined
  if (exporter !== undefined && exporter !== 'otlp') throw new ConfigError('OTEL_TRACES_EXPORTER: must be otlp or none')
  if ((settings.protocol ?? PROTOCOL) !== PROTOCOL)
    throw new ConfigError(`OTEL_EXPORTER_OTLP_PROTOCOL: must be ${PROTOCOL}`)
  const { serviceName, ratio, perSecond } = settings
  return {
    url: tracesEndpoint ?? `${(endpoint ?? COLLECTOR).replace(/\/+$/, '')}/v1/traces`,
    headers: Object.assign({}, ...headers.map(pairsOf)),
    serviceName,
    resource: pairsOf(resource),
    ratio,
    perSecond,
  }
}

function pairsOf(text: string): Record<string, string> {
  const pairs = text.split(',').filter(Boolean)
  return Object.fromEntries(
    pairs.map(pair => {
      const at = pair.indexOf('=')
      return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())]
    }),
  )
}

/** A value that isn't percent-encoded as it should be is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
