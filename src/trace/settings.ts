// What OpenTelemetry's settings come to, by its own rules: whether there are traces, and where they go. Read from the
// environment by src/config.ts, as all settings are.
import type { OtelSettings } from '../config.ts'

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

/** `name=value` pairs: values are percent-encoded where they hold a comma or a blank. */
const PAIRS = /^( *[A-Za-z0-9._/-]{1,128} *=[ !-+\--~]{0,1024}(,|$)){0,32}$/
const PRINTABLE = /^[ -~]{1,128}$/

/**
 * Undefined where nothing turns traces on, or something turns them off. What is said of traces alone goes first. A value
 * that can't be obeyed turns them off, too, and `warn` is told its name: such settings may be meant for other programs on
 * the host, and no trace is worth a vault that doesn't start.
 */
export function tracingOf(settings: OtelSettings, warn: (flaw: string) => void): TracingConfig | undefined {
  const { disabled, exporter, endpoint, tracesEndpoint, headers, resource } = settings
  const isNamed = exporter !== undefined || endpoint !== undefined || tracesEndpoint !== undefined
  if (disabled || exporter === 'none' || !isNamed) return undefined
  const flaw = flawOf(settings)
  if (flaw !== undefined) {
    warn(flaw)
    return undefined
  }
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

/** The first setting that can't be obeyed; its value may be a secret and isn't told. */
function flawOf(settings: OtelSettings): string | undefined {
  const { exporter = 'otlp', protocol = PROTOCOL, endpoint, tracesEndpoint, headers, resource, serviceName } = settings
  if (exporter !== 'otlp') return 'OTEL_TRACES_EXPORTER: must be otlp or none'
  if (protocol !== PROTOCOL) return `OTEL_EXPORTER_OTLP_PROTOCOL: must be ${PROTOCOL}`
  if (!isCollector(tracesEndpoint)) return 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be an http or https URL'
  if (tracesEndpoint === undefined && (!isCollector(endpoint) || /[?#]/.test(endpoint ?? '')))
    return 'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL without a query'
  if (!headers.every(text => PAIRS.test(text))) return 'OTEL_EXPORTER_OTLP_HEADERS: must be name=value, comma-separated'
  if (!PAIRS.test(resource)) return 'OTEL_RESOURCE_ATTRIBUTES: must be name=value, comma-separated'
  if (!PRINTABLE.test(serviceName)) return 'OTEL_SERVICE_NAME: must be 1 to 128 printable characters'
  return undefined
}

const isCollector = (url: string | undefined) =>
  url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))

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
