// What follows from the console's origin: the host that requests must name, the relying party of passkeys, and the name
// and form of the cookie. No header of a request has a say in it.
import { type RelyingParty, relyingPartyOf } from '../../src/vault/passkey/relying-party.ts'

export interface Site extends RelyingParty {
  /** The host, with its port unless it is the scheme's own. */
  host: string
  isSecure: boolean
  /** A cookie of `http://localhost` has a name of its own, because browsers take `__Host-` only with `Secure`. */
  cookie: string
  /** The cookie of a wall display, which opens other routes than a session. */
  displayCookie: string
}

/** Throws `ConfigError` unless the origin is https, or http on `localhost`. */
export function siteOf(origin: string): Site {
  const party = relyingPartyOf(origin)
  // As the URL reads it: a scheme may be written in capitals.
  const { protocol, host } = new URL(party.origin)
  const isSecure = protocol === 'https:'
  const prefix = isSecure ? '__Host-' : ''
  return { ...party, host, isSecure, cookie: `${prefix}tokenmill-console`, displayCookie: `${prefix}tokenmill-display` }
}
