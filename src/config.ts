// The operator's settings, read from the environment and checked (OpenTelemetry's by src/trace). Only main files read
// them; rooms get values. What a supervisor passes to its workers is in workers/process/worker-settings.ts.
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'

const port = z.coerce.number().int().min(0).max(65535)
const HOSTS = /^(([a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:\d{1,5})?(,(?=.)|$)){0,64}$/i
/** `issuer=URL`, separated by commas. An issuer's name holds no `=`, no comma and no blank. */
const ISSUERS = /^([!-+\--<>-~]{1,256}=https?:\/\/[^,\s]{1,1000}(,(?=.)|$)){0,16}$/
/** OpenTelemetry's variables may be meant for other programs too: read unchecked, and checked by src/trace where traces are on. */
const foreign = z.string().optional()
const PLACE = /^(file:(\/\/)?\/[^/\s]\S*|s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[!-~]*)?)$/
const printable = (most: number) =>
  z.string().regex(new RegExp(`^[!-~]{1,${most}}$`), `must be 1 to ${most} printable characters`)
const place = (message: string) => z.string().regex(PLACE, message)
const days = (least: number) => z.coerce.number().int().min(least).max(3650)

const Environment = z.object({
  DATABASE_URL: z
    .string()
    // libpq's keywords are accepted too: `host=a,b dbname=tokenmill`.
    .regex(/^(postgres(ql)?:\/\/|\s*\w+\s*=)/, 'must start with postgres:// or postgresql://')
    .optional(),
  REDIS_URL: z
    .string()
    .regex(
      /^rediss?:\/\/[^,]+(,rediss?:\/\/[^,]+)*$/,
      'must be redis:// or rediss:// URLs, comma-separated for a cluster',
    )
    .optional(),
  TOKENMILL_DATA_DIR: z.string().min(1).default('.tokenmill'),
  TOKENMILL_EMBEDDED: z.enum(['0', '1']).default('0'),
  TOKENMILL_HTTP_PORT: port.default(8080),
  TOKENMILL_HTTP_HOST: z.string().min(1).default('127.0.0.1'),
  TOKENMILL_PREFIX: printable(64).default('{tokenmill}'),
  TOKENMILL_KEK: z.string().min(1).optional(),
  TOKENMILL_KEK_FILE: z.string().min(1).optional(),
  TOKENMILL_BACKUP_DAYS: days(0).default(90),
  TOKENMILL_AUDIENCE: printable(128).default('tokenmill'),
  TOKENMILL_RECEIPT_DAYS: days(8).default(90),
  TOKENMILL_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  TOKENMILL_METRICS_PORT: port.optional(),
  TOKENMILL_THIRD_PARTY_TYPES: z
    .string()
    .regex(/^[A-Z0-9_]{1,32}(,[A-Z0-9_]{1,32}){0,7}$/, 'must be names of A-Z, 0-9 and _, comma-separated')
    .default('THIRD_PARTY_1,THIRD_PARTY_2'),
  TOKENMILL_LOCAL_SCHEMES: z
    .string()
    .regex(/^([A-Z0-9_]{1,32}(,[A-Z0-9_]{1,32}){0,31})?$/, 'must be names of A-Z, 0-9 and _, comma-separated')
    .default(''),
  TOKENMILL_GUESSES_MAX: z.coerce.number().int().min(1).max(1_000_000).default(10),
  TOKENMILL_DRY_RUN_ROWS_MAX: z.coerce.number().int().min(0).default(5_000_000),
  TOKENMILL_LOCK_SECONDS: z.coerce.number().min(1).max(3600).default(60),
  TOKENMILL_RESEND_SECONDS: z.coerce.number().min(1).max(3600).default(60),
  TOKENMILL_PROCESSES: z.coerce.number().int().min(1).max(64).optional(),
  TOKENMILL_INTERACTIVE_PROCESSES: z.coerce.number().int().min(1).max(64).optional(),
  TOKENMILL_GATEWAY_TIMEOUT_SECONDS: z.coerce.number().min(0.1).max(600).default(30),
  TOKENMILL_GATEWAY_INFLIGHT: z.coerce.number().int().min(1).max(100_000).default(1_000),
  TOKENMILL_BATCH_BODY_MB: z.coerce.number().int().min(1).max(1_048_576).default(4_096),
  TOKENMILL_RATE_LIMIT: z.coerce.number().int().min(0).max(10_000_000).default(0),
  TOKENMILL_JWT_ISSUERS: z.string().regex(ISSUERS, 'must be issuer=https://jwks-url, comma-separated').default(''),
  TOKENMILL_TLS_CERT: z.string().min(1).optional(),
  TOKENMILL_TLS_KEY: z.string().min(1).optional(),
  TOKENMILL_PRIVATE_HOSTS: z
    .string()
    .regex(HOSTS, 'must be host or host:port, comma-separated; an IPv6 address in brackets')
    .default(''),
  TOKENMILL_SCHEME_FILE: z.string().min(1).optional(),
  TOKENMILL_THREE_DS_PORT: port.default(8081),
  TOKENMILL_THREE_DS_URL: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .regex(/^[^?#]{1,200}$/, 'must have no query and no fragment')
    .optional(),
  TOKENMILL_THREE_DS_REF_NUMBER: printable(32).default('tokenmill'),
  TOKENMILL_THREE_DS_OPERATOR_ID: printable(32).default('tokenmill'),
  TOKENMILL_THREE_DS_TIMEOUT_SECONDS: z.coerce.number().min(0.1).max(60).default(15),
  REPORTS_URL: place('must be file:///folder or s3://bucket/prefix').optional(),
  AUDIT_URL: place('must be file:///folder or s3://bucket/prefix; syslog is not supported').optional(),
  TOKENMILL_REPORT_DAYS: days(1).default(400),
  TOKENMILL_RESEAL_ROWS_PER_SECOND: z.coerce.number().int().min(100).max(1_000_000).default(2_000),
  TOKENMILL_RESEAL_LAG_SECONDS: z.coerce.number().min(0.1).max(3600).default(10),
  TOKENMILL_RESEAL_LATENCY_MS: z.coerce.number().int().min(10).max(600_000).default(250),
  TOKENMILL_RESEAL_WAL_MB_PER_SECOND: z.coerce.number().min(1).max(100_000).default(50),
  TOKENMILL_SCHEDULE_LATE_MINUTES: z.coerce.number().min(1).max(10_080).default(30),
  TOKENMILL_TRACES_RATIO: z.coerce.number().min(0).max(1).default(1),
  TOKENMILL_TRACES_PER_SECOND: z.coerce.number().int().min(1).max(100_000).default(100),
  OTEL_SDK_DISABLED: foreign,
  OTEL_TRACES_EXPORTER: foreign,
  OTEL_EXPORTER_OTLP_ENDPOINT: foreign,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: foreign,
  OTEL_EXPORTER_OTLP_PROTOCOL: foreign,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: foreign,
  OTEL_EXPORTER_OTLP_HEADERS: foreign,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: foreign,
  OTEL_SERVICE_NAME: foreign,
  OTEL_RESOURCE_ATTRIBUTES: foreign,
})

export interface Config {
  databaseUrl: string | undefined
  redisUrls: string[] | undefined
  dataDir: string
  /** TOKENMILL_EMBEDDED=1: use the embedded PostgreSQL although REDIS_URL is set and DATABASE_URL isn't. */
  embeddedForced: boolean
  httpPort: number
  httpHost: string
  prefix: string
  /** The key-encryption keys of this host: a URI, or the path of a file of URIs. Unset where `kekFile` is set. */
  kek: string | undefined
  /** The file of this host's only key-encryption key. */
  kekFile: string | undefined
  /** For how many days backups are kept. A key may be needed for as long after its last use. */
  backupDays: number
  audience: string
  receiptDays: number
  logLevel: string
  metricsPort: number | undefined
  thirdPartyTypes: string[]
  localSchemes: string[]
  guessesMax: number
  dryRunRowsMax: number
  lockMs: number
  /** After this time without an answer `migrate`, `submit` and gateways send a job again. */
  resendMs: number
  processes: Record<'bulk' | 'interactive', number | undefined>
  /** How long a write over HTTP waits for its answer. */
  gatewayTimeoutMs: number
  /** How many writes over HTTP may wait at the same time, per gateway process. */
  gatewayInFlightMax: number
  /** HTTP requests per client, minute and process; 0: no limit. */
  rateLimit: number
  /** The largest body of a batch over HTTP, in bytes. */
  batchBytesMax: number
  /** Trusted issuers of JWTs: issuer → URL of its JWKS. */
  jwtIssuers: ReadonlyMap<string, string>
  /** Paths of the PEM files with the gateway's certificate chain and key. Both are set or neither. */
  tls: { certFile: string; keyFile: string } | undefined
  /**
   * Outgoing requests may go to these hosts although their addresses are private, and may use http. Each is `host` or
   * `host:port`.
   */
  privateHosts: string[]
  /** The file that says which networks and providers make scheme tokens and third-party tokens. */
  schemeFile: string | undefined
  threeDsPort: number
  /**
   * The base URL at which directory servers and browsers reach the 3-D Secure service, without a trailing slash;
   * undefined: built from host and port.
   */
  threeDsUrl: string | undefined
  /** The reference number under which directory servers know this 3DS Server (`threeDSServerRefNumber`). */
  threeDsRefNumber: string
  threeDsOperatorId: string
  /** The time limit of each attempt at a directory server. */
  threeDsTimeoutMs: number
  /** Where report files are stored; undefined: there is no place that all hosts of this installation reach. */
  reportsUrl: string | undefined
  reportDays: number
  /** How fast a re-encryption goes, and what slows it (workers/reseal/pace.ts). */
  reseal: Record<'rowsPerSecondMax' | 'replicaLagMsMax' | 'workMsMax' | 'walBytesPerSecondMax', number>
  /** Where segments of the audit go; undefined: to a folder of the data directory. */
  auditUrl: string | undefined
  /** A scheduled run that hasn't ended after this time counts as late. */
  scheduleLateMs: number
  otel: OtelSettings
}

/** OpenTelemetry's settings as they are set; src/trace/settings.ts decides what they mean. */
export interface OtelSettings {
  disabled: boolean
  exporter: string | undefined
  protocol: string | undefined
  endpoint: string | undefined
  /** The endpoint for traces only (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT). */
  tracesEndpoint: string | undefined
  /** `name=value` pairs. They hold secrets. */
  headers: string[]
  serviceName: string
  resource: string
  /** Which traces are recorded: `ratio`, a share from 0 to 1, and the most per second and process. */
  ratio: number
  perSecond: number
}

/** A setting is wrong. The command prints one line that names the setting and exits with 78 (EX_CONFIG). */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/**
 * Reads the settings of `schema` from `env`; an empty text counts as unset. Throws `ConfigError` that names the first
 * bad setting.
 */
export function readSettings<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, env: NodeJS.ProcessEnv) {
  const known = Object.fromEntries(Object.keys(schema.shape).map(key => [key, env[key] || undefined]))
  const parsed = schema.safeParse(known)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  // Every setting arrives as a text, so a wrong type means that a number was expected.
  const wrong = issue?.code === 'invalid_type' ? 'must be a number' : issue?.message
  throw new ConfigError(`${issue?.path.join('.')}: ${wrong}`)
}

/** Reads all settings from `env`. Throws `ConfigError` that names the first bad setting. */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const e = readSettings(Environment, env)
  if (e.TOKENMILL_KEK && e.TOKENMILL_KEK_FILE)
    throw new ConfigError('TOKENMILL_KEK: TOKENMILL_KEK_FILE is set, too; set one of them only')
  const dataDir = isAbsolute(e.TOKENMILL_DATA_DIR) ? e.TOKENMILL_DATA_DIR : resolve(e.TOKENMILL_DATA_DIR)
  return {
    databaseUrl: e.DATABASE_URL,
    redisUrls: e.REDIS_URL?.split(','),
    dataDir,
    embeddedForced: e.TOKENMILL_EMBEDDED === '1',
    httpPort: e.TOKENMILL_HTTP_PORT,
    httpHost: e.TOKENMILL_HTTP_HOST,
    prefix: e.TOKENMILL_PREFIX,
    kek: e.TOKENMILL_KEK,
    kekFile: e.TOKENMILL_KEK_FILE ? resolve(e.TOKENMILL_KEK_FILE) : undefined,
    backupDays: e.TOKENMILL_BACKUP_DAYS,
    audience: e.TOKENMILL_AUDIENCE,
    receiptDays: e.TOKENMILL_RECEIPT_DAYS,
    logLevel: e.TOKENMILL_LOG_LEVEL,
    metricsPort: e.TOKENMILL_METRICS_PORT,
    thirdPartyTypes: e.TOKENMILL_THIRD_PARTY_TYPES.split(','),
    localSchemes: e.TOKENMILL_LOCAL_SCHEMES.split(',').filter(Boolean),
    guessesMax: e.TOKENMILL_GUESSES_MAX,
    dryRunRowsMax: e.TOKENMILL_DRY_RUN_ROWS_MAX,
    lockMs: e.TOKENMILL_LOCK_SECONDS * 1000,
    resendMs: e.TOKENMILL_RESEND_SECONDS * 1000,
    processes: { bulk: e.TOKENMILL_PROCESSES, interactive: e.TOKENMILL_INTERACTIVE_PROCESSES },
    gatewayTimeoutMs: Math.round(e.TOKENMILL_GATEWAY_TIMEOUT_SECONDS * 1000),
    gatewayInFlightMax: e.TOKENMILL_GATEWAY_INFLIGHT,
    rateLimit: e.TOKENMILL_RATE_LIMIT,
    batchBytesMax: e.TOKENMILL_BATCH_BODY_MB * 1024 * 1024,
    jwtIssuers: issuersOf(e.TOKENMILL_JWT_ISSUERS),
    tls: tlsOf(e.TOKENMILL_TLS_CERT, e.TOKENMILL_TLS_KEY),
    privateHosts: e.TOKENMILL_PRIVATE_HOSTS.toLowerCase().split(',').filter(Boolean),
    schemeFile: e.TOKENMILL_SCHEME_FILE ? resolve(e.TOKENMILL_SCHEME_FILE) : undefined,
    threeDsPort: e.TOKENMILL_THREE_DS_PORT,
    threeDsUrl: e.TOKENMILL_THREE_DS_URL?.replace(/\/+$/, ''),
    threeDsRefNumber: e.TOKENMILL_THREE_DS_REF_NUMBER,
    threeDsOperatorId: e.TOKENMILL_THREE_DS_OPERATOR_ID,
    threeDsTimeoutMs: Math.round(e.TOKENMILL_THREE_DS_TIMEOUT_SECONDS * 1000),
    reportsUrl: e.REPORTS_URL ?? (e.DATABASE_URL === undefined ? ownReportsUrl(dataDir) : undefined),
    reportDays: e.TOKENMILL_REPORT_DAYS,
    reseal: {
      rowsPerSecondMax: e.TOKENMILL_RESEAL_ROWS_PER_SECOND,
      workMsMax: e.TOKENMILL_RESEAL_LATENCY_MS,
      replicaLagMsMax: Math.round(e.TOKENMILL_RESEAL_LAG_SECONDS * 1000),
      walBytesPerSecondMax: e.TOKENMILL_RESEAL_WAL_MB_PER_SECOND * 1_000_000,
    },
    auditUrl: e.AUDIT_URL,
    scheduleLateMs: e.TOKENMILL_SCHEDULE_LATE_MINUTES * 60_000,
    otel: otelOf(e),
  }
}

/** The default place of report files, on the local disk: right for an installation on one machine. */
export function ownReportsUrl(dataDir: string): string {
  return pathToFileURL(join(dataDir, 'reports')).href
}

function otelOf(e: z.infer<typeof Environment>): OtelSettings {
  return {
    disabled: e.OTEL_SDK_DISABLED?.toLowerCase() === 'true',
    exporter: e.OTEL_TRACES_EXPORTER,
    protocol: e.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? e.OTEL_EXPORTER_OTLP_PROTOCOL,
    endpoint: e.OTEL_EXPORTER_OTLP_ENDPOINT,
    tracesEndpoint: e.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    headers: [e.OTEL_EXPORTER_OTLP_HEADERS ?? '', e.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? ''],
    serviceName: e.OTEL_SERVICE_NAME ?? 'tokenmill',
    resource: e.OTEL_RESOURCE_ATTRIBUTES ?? '',
    ratio: e.TOKENMILL_TRACES_RATIO,
    perSecond: e.TOKENMILL_TRACES_PER_SECOND,
  }
}

function issuersOf(text: string): Map<string, string> {
  const pairs = text.split(',').filter(Boolean)
  return new Map(pairs.map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

function tlsOf(certFile: string | undefined, keyFile: string | undefined): Config['tls'] {
  if (certFile === undefined && keyFile === undefined) return undefined
  if (certFile === undefined) throw new ConfigError('TOKENMILL_TLS_CERT: must be set where TOKENMILL_TLS_KEY is')
  if (keyFile === undefined) throw new ConfigError('TOKENMILL_TLS_KEY: must be set where TOKENMILL_TLS_CERT is')
  return { certFile: resolve(certFile), keyFile: resolve(keyFile) }
}

/**
 * Where the store is: the operator's PostgreSQL (`url`), the embedded PostgreSQL, or nowhere (a process that only
 * produces).
 */
export function storeMode(config: Config): 'url' | 'embedded' | 'none' {
  if (config.databaseUrl) return 'url'
  return config.redisUrls && !config.embeddedForced ? 'none' : 'embedded'
}
