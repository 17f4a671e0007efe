// The cookies of sessions and of wall displays: 256 random bits, of which the store has only the hash. Their names and attributes
// follow from the console's origin.
import { createHash, randomBytes } from 'node:crypto'
import type { Site } from '../site.ts'

const VALUE = /^[A-Za-z0-9_-]{43}$/

/** A new value, and its hash for the store. */
export function makeCookie(): { value: string; hash: Buffer } {
  const value = randomBytes(32).toString('base64url')
  return { value, hash: hashOf(value) }
}

/** The hash of the cookie of this name in a `Cookie` header; undefined without one of the right form. */
export function readCookie(header: string | undefined, { cookie }: Pick<Site, 'cookie'>): Buffer | undefined {
  const pairs = (header ?? '').split(';').map(pair => pair.trim())
  const values = pairs.filter(pair => pair.startsWith(`${cookie}=`)).map(pair => pair.slice(cookie.length + 1))
  const [value] = values
  return values.length === 1 && value !== undefined && VALUE.test(value) ? hashOf(value) : undefined
}

/** The `Set-Cookie` header. An empty value removes the cookie. `seconds`: how long the browser keeps it; without it, as long as it runs. */
export function setCookie(
  value: string,
  { cookie, isSecure }: Pick<Site, 'cookie' | 'isSecure'>,
  seconds?: number,
): string {
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...(isSecure ? ['Secure'] : [])]
  const lasts = value === '' ? 0 : seconds
  return [`${cookie}=${value}`, ...attributes, ...(lasts === undefined ? [] : [`Max-Age=${lasts}`])].join('; ')
}

export const hashOf = (value: string): Buffer => createHash('sha256').update(value).digest()
