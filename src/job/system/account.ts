// An account at an OpenID provider, as an ID token names it: `iss` and `sub` (OpenID Connect Core 1.0, section 2).
import { z } from 'zod'

const ISSUER = /^https?:\/\/[!-~]{1,290}$/

/** The URL of a provider, exactly as it writes it into `iss`; without query and fragment. */
export function isIssuer(text: string): boolean {
  if (!ISSUER.test(text) || /[?#]/.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

/** At most 255 ASCII characters; printable ones only are taken, and no space at an end. */
export function isSubject(text: string): boolean {
  return /^[!-~]([ -~]{0,253}[!-~])?$/.test(text)
}

/** The account that a person connects or disconnects. */
export const AccountParameters = z.strictObject({
  issuer: z.string().refine(isIssuer),
  subject: z.string().refine(isSubject),
})
