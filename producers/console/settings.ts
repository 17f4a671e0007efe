// The console's own settings. cli/process/console.ts reads them; the other settings of its process are in src/config.ts.
import { z } from 'zod'
import { readSettings } from '../../src/config.ts'
import { OPENID_ENVIRONMENT, type OpenIdSettings, openIdSettingsOf } from './openid-provider/settings.ts'

const Environment = z.object({
  TOKENMILL_CONSOLE_PORT: z.coerce.number().int().min(0).max(65535).default(8090),
  TOKENMILL_CONSOLE_ORIGIN: z.string().min(1).max(200).optional(),
  TOKENMILL_CONSOLE_DATABASE_URL: z
    .string()
    .regex(/^(postgres(ql)?:\/\/|\s*\w+\s*=)/, 'must start with postgres:// or postgresql://')
    .optional(),
  TOKENMILL_ENVIRONMENT: z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9 _-]{0,14}[A-Za-z0-9])?$/, 'must be a word of at most 16 letters and digits')
    .optional(),
  ...OPENID_ENVIRONMENT,
})

export interface ConsoleSettings {
  port: number
  /** Unset: `http://localhost` with the port. */
  origin: string | undefined
  /** A secret. Unset: `DATABASE_URL`. */
  databaseUrl: string | undefined
  /** The word in the bar of every page, for example `PRODUCTION`. Unset: none, or `LOCAL` on the embedded engine. */
  environment?: string | undefined
  /** Unset: people sign in with passkeys only. */
  openid?: OpenIdSettings | undefined
}

/** Throws `ConfigError` that names the first bad setting. */
export function readConsoleSettings(env: NodeJS.ProcessEnv): ConsoleSettings {
  const e = readSettings(Environment, env)
  return {
    port: e.TOKENMILL_CONSOLE_PORT,
    origin: e.TOKENMILL_CONSOLE_ORIGIN,
    databaseUrl: e.TOKENMILL_CONSOLE_DATABASE_URL,
    environment: e.TOKENMILL_ENVIRONMENT?.toUpperCase(),
    openid: openIdSettingsOf(e),
  }
}
