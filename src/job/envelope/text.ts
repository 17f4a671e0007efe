// The basic shapes of request fields. Every text is well-formed Unicode without control characters, so that no text can
// smuggle a line break into a log, a CSV or a terminal.
import { z } from 'zod'
import { numbersIn, panFault } from '../../token/pan.ts'
import { ALIAS } from '../choices.ts'

const CONTROLS = /[\p{Cc}\u2028\u2029]/u

export function isPrintable(text: string): boolean {
  return text.isWellFormed() && !CONTROLS.test(text)
}

/** A text of `least` to `most` UTF-16 units. */
export const text = (least: number, most: number) =>
  z
    .string()
    .min(least)
    .max(most)
    .refine(isPrintable, { params: { reason: 'field_characters' } })

/** Any 8-4-4-4-12 UUID, whatever its version; compared in lower case. */
export const uuid = () => z.guid().toLowerCase()

/** A calendar date, `YYYY-MM-DD`. */
export const date = () => z.iso.date()

export const month = () => z.int().min(1).max(12)
export const year = () => z.int().min(1900).max(9999)

/** An address by the HTML standard's definition of a valid e-mail address. */
export const emailAddress = () => z.email({ pattern: z.regexes.html5Email }).min(3).max(254)

/** A reuse token in a request. No token looks like a card number; a card number sent by mistake is refused here. */
export const tokenId = () => text(14, 255).refine(isNoCard, { params: { reason: 'token_not_found' } })

function isNoCard(id: string): boolean {
  return !numbersIn(id).some(number => panFault(number) === undefined)
}

export const alias = () => z.string().regex(ALIAS)

/** JWE of at most 16 KiB, or an OpenPGP message whose armor and base64 make it longer. */
export const encryptedCard = () =>
  z
    .string()
    .min(1)
    .max(24_576)
    .refine(isArmorSafe, { params: { reason: 'field_characters' } })

// Bare armor holds line breaks; otherwise only printable ASCII is accepted.
function isArmorSafe(value: string): boolean {
  return /^[\t\r\n -~]*$/.test(value)
}

/** Letters of a scheme's name: `VISA`, `CB`, or an operator's own. */
export const brandName = () => z.string().regex(/^[A-Z0-9_]{1,32}$/)
