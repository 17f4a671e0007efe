// What follows from the console's origin: the host that requests must name, the relying party of passkeys, and the name
// and form of the cookie. No header of a request has a say in it.
import { ConfigError } from '../../src/config.ts'

export interface Site {
  /** As browsers send it: `https://console.example.com`, without a slash at its end. */
  origin: string
  /** The host, with its port unless it is the scheme's own. */
  host: string
  /** The domain to which passkeys are bound. */
  rpId: string
  isSecure: boolean
  /** A cookie of `http://localhost` has a name of its own, because browsers take `__Host-` only with `Secure`. */
  cookie: string
}

const SETTING = 'TOKENMILL_CONSOLE_ORIGIN'

/** Reads an origin. Throws `ConfigError` unless it is https, or http on `localhost`. */
export function siteOf(origin: string): Site {
  const url = URL.parse(origin)
  if (url === null || url.origin === 'null' || url.username !== '' || url.pathname !== '/' || url.search || url.hash)
    throw new ConfigError(`${SETTING}: must be an origin, such as https://console.example.com`)
  const isSecure = url.protocol === 'https:'
  const isLocal = url.protocol === 'http:' && url.hostname === 'localhost'
  if (!isSecure && !isLocal) throw new ConfigError(`${SETTING}: must be https; only http://localhost may be without it`)
  if (/^[\d.]+$|^\[/.test(url.hostname))
    throw new ConfigError(`${SETTING}: must name a host; passkeys are not bound to an address`)
  const cookie = isSecure ? '__Host-tokenmill-console' : 'tokenmill-console'
  return { origin: url.origin, host: url.host, rpId: url.hostname, isSecure, cookie }
}
