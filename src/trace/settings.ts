// Interprets OpenTelemetry's settings by OpenTelemetry's rules: whether traces are on, and where they are sent.
// src/config.ts reads them from the environment, like all settings.
import type { OtelSettings } from '../config.ts'

/** Where spans are sent, and which traces are recorded. */
export interface TracingConfig {
  url: string
  /** Headers of each request. They are secrets: they may hold the collector's API key. */
  headers: Record<string, string>
  serviceName: string
  /** Attributes of the process beside its role and release. */
  resource: Record<string, string>
  ratio: number
  perSecond: number
}

const COLLECTOR = 'http://localhost:4318'

const PROTOCOL = 'http/protobuf'

/** `name=value` pairs. A comma in a value must be percent-encoded. */
const PAIRS = /^( *[A-Za-z0-9._/-]{1,128} *=[ !-+\--~]{0,1024}(,|$)){0,32}$/
const PRINTABLE = /^[ -~]{1,128}$/

/**
 * The configuration of traces; undefined if nothing turns traces on, or something turns them off. A setting for traces
 * alone takes precedence over the general one. A value that can't be used turns traces off, and `warn` gets the
 * setting's name. It is no error, because such settings may be meant for other programs on the host, and missing traces
 * are no reason not to start.
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

/** The first setting with a value that can't be used. The text doesn't hold the value, which may be a secret. */
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

/** The decoded value, or the value as it is if it isn't correctly percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
