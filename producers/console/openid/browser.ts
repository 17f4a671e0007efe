// Ties a sign-in to the browser that began it: a cookie of its own, for as long as a person may be at the provider. Without it a
// stranger could have somebody sign in with the stranger's account.
import { FLOW_MS } from '../../../src/store/console/openid-flows.ts'
import { makeCookie, readCookie, setCookie } from '../server/cookie.ts'
import type { Site } from '../site.ts'

const ofFlow = (site: Site): Site => ({ ...site, cookie: `${site.cookie}-openid` })

/** The `Set-Cookie` header for a new flow, and the hash of the cookie for the store. */
export function markBrowser(site: Site): { header: string; hash: Buffer } {
  const { value, hash } = makeCookie()
  return { header: `${setCookie(value, ofFlow(site))}; Max-Age=${FLOW_MS / 1000}`, hash }
}

export function readBrowser(header: string | undefined, site: Site): Buffer | undefined {
  return readCookie(header, ofFlow(site))
}

export function unmarkBrowser(site: Site): string {
  return setCookie('', ofFlow(site))
}
