// Every setting, read once from the environment and checked. Only main files call this; rooms are handed values.
import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'

const port = z.coerce.number().int().min(0).max(65535)
const days = (least: number) => z.coerce.number().int().min(least).max(3650)

const Environment = z.object({
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must start with postgres:// or postgresql://')
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
  TOKENMILL_PREFIX: z
    .string()
    .regex(/^[!-~]{1,64}$/, 'must be 1 to 64 printable characters')
    .default('{tokenmill}'),
  TOKENMILL_KEK_FILE: z.string().min(1).optional(),
  TOKENMILL_AUDIENCE: z
    .string()
    .regex(/^[!-~]{1,128}$/, 'must be 1 to 128 printable characters')
    .default('tokenmill'),
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
})

export interface Config {
  databaseUrl: string | undefined
  redisUrls: string[] | undefined
  dataDir: string
  /** TOKENMILL_EMBEDDED=1: use the embedded store although REDIS_URL stands alone. */
  embeddedForced: boolean
  httpPort: number
  httpHost: string
  prefix: string
  kekFile: string | undefined
  audience: string
  receiptDays: number
  logLevel: string
  metricsPort: number | undefined
  thirdPartyTypes: string[]
  localSchemes: string[]
  guessesMax: number
  dryRunRowsMax: number
  lockMs: number
  /** After so long an unanswered job of `migrate` or `submit` is sent again. */
  resendMs: number
  processes: number | undefined
}

/** A setting that is wrong: exit 78 (EX_CONFIG), with one line that names it. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Reads `env`; throws `ConfigError` naming the first bad setting. */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const known = Object.fromEntries(Object.keys(Environment.shape).map(key => [key, env[key] || undefined]))
  const parsed = Environment.safeParse(known)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    // Every setting is a text: what has the wrong type is one that should have been a number.
    const wrong = issue?.code === 'invalid_type' ? 'must be a number' : issue?.message
    throw new ConfigError(`${issue?.path.join('.')}: ${wrong}`)
  }
  const e = parsed.data
  const dataDir = isAbsolute(e.TOKENMILL_DATA_DIR) ? e.TOKENMILL_DATA_DIR : resolve(e.TOKENMILL_DATA_DIR)
  return {
    databaseUrl: e.DATABASE_URL,
    redisUrls: e.REDIS_URL?.split(','),
    dataDir,
    embeddedForced: e.TOKENMILL_EMBEDDED === '1',
    httpPort: e.TOKENMILL_HTTP_PORT,
    httpHost: e.TOKENMILL_HTTP_HOST,
    prefix: e.TOKENMILL_PREFIX,
    kekFile: e.TOKENMILL_KEK_FILE ? resolve(e.TOKENMILL_KEK_FILE) : undefined,
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
    processes: e.TOKENMILL_PROCESSES,
  }
}

/** Where the store is: a PostgreSQL of the operator's, the embedded one, or none (a pure producer). */
export function storeMode(config: Config): 'url' | 'embedded' | 'none' {
  if (config.databaseUrl) return 'url'
  return config.redisUrls && !config.embeddedForced ? 'none' : 'embedded'
}
