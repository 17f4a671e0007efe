// The origin of the console, to which passkeys are bound. The console and every worker read it from their own settings, so that
// neither the console nor the store's owner can tell a worker another one.
import { z } from 'zod'
import { ConfigError, readSettings } from '../../config.ts'

export interface RelyingParty {
  /** As browsers send it: `https://console.example.com`, without a slash at its end. */
  origin: string
  /** The origin's domain. */
  rpId: string
}

const SETTING = 'TOKENMILL_CONSOLE_ORIGIN'
const PORT = 8090

const Environment = z.object({
  TOKENMILL_CONSOLE_ORIGIN: z.string().min(1).max(200).optional(),
  TOKENMILL_CONSOLE_PORT: z.coerce.number().int().min(0).max(65535).default(PORT),
})

/** Reads the settings of an environment. Throws `ConfigError` that names the first bad one. */
export function readRelyingParty(env: NodeJS.ProcessEnv): RelyingParty {
  const e = readSettings(Environment, env)
  return relyingPartyOf(e.TOKENMILL_CONSOLE_ORIGIN ?? `http://localhost:${e.TOKENMILL_CONSOLE_PORT || PORT}`)
}

/** Throws `ConfigError` unless it is an origin with https, or `http://localhost`. */
export function relyingPartyOf(origin: string): RelyingParty {
  const url = URL.parse(origin)
  if (!url || url.origin === 'null' || url.username !== '' || url.pathname !== '/' || url.search || url.hash)
    throw new ConfigError(`${SETTING}: must be an origin, such as https://console.example.com`)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && url.hostname === 'localhost'))
    throw new ConfigError(`${SETTING}: must be https; only http://localhost may be without it`)
  if (/^[\d.]+$|^\[/.test(url.hostname))
    throw new ConfigError(`${SETTING}: must name a host; passkeys are not bound to an address`)
  return { origin: url.origin, rpId: url.hostname }
}
