// The basic schemas of request fields. Every text but an encrypted card is well-formed Unicode without control
// characters, so that it can't put a line break into a log, a CSV file or a terminal.
import { z } from 'zod'
import { parseUtc } from '../../token/capture-time.ts'
import { numbersIn, panFault, withoutPadding } from '../../token/pan.ts'
import { ALIAS } from '../choices.ts'

const CONTROLS = /[\p{Cc}\u2028\u2029]/u

export function isPrintable(text: string): boolean {
  return text.isWellFormed() && !CONTROLS.test(text)
}

/** A text of `least` to `most` Unicode code points. */
export const text = (least: number, most: number) =>
  z
    .string()
    .min(least)
    .max(most)
    .refine(isPrintable, { params: { reason: 'field_characters' } })

/** A UUID of any version, turned into lower case. */
export const uuid = () => z.guid().toLowerCase()

/** A calendar date, `YYYY-MM-DD`. */
export const date = () => z.iso.date()

/** When data was given at its source: RFC 3339 in UTC. */
export const sourceTime = () =>
  z.string().refine(text => parseUtc(text) !== undefined, { params: { reason: 'source_time_invalid' } })

export const month = () => z.int().min(1).max(12)
export const year = () => z.int().min(1900).max(9999)

/** An address by the HTML standard's definition of a valid e-mail address. */
export const emailAddress = () => z.email({ pattern: z.regexes.html5Email }).min(3).max(254)

/**
 * A reuse token in a request. No token looks like a card number, so a card number that was sent by mistake is refused
 * here.
 */
export const tokenId = () => text(14, 255).refine(isNoCard, { params: { reason: 'token_not_found' } })

function isNoCard(id: string): boolean {
  return !numbersIn(id).some(number => panFault(withoutPadding(number)) === undefined)
}

export const alias = () => z.string().regex(ALIAS)

export const ENCRYPTED_CARD_MAX = 24_576

/** An encrypted card: a JWE of at most 16 KiB, or an OpenPGP message, which armor and base64 make longer. */
export const encryptedCard = () =>
  z
    .string()
    .min(1)
    .max(ENCRYPTED_CARD_MAX)
    .refine(isArmorSafe, { params: { reason: 'field_characters' } })

// Unencoded armor holds line breaks; every other form is printable ASCII only.
export function isArmorSafe(value: string): boolean {
  return /^[\t\r\n -~]*$/.test(value)
}

/** The form of a kind's name. */
export const kindName = () => z.string().regex(/^[a-z-]{1,32}$/)

/** The name of a card scheme: `VISA`, `CB`, or an operator's own. */
export const BRAND_NAME = /^[A-Z0-9_]{1,32}$/
export const brandName = () => z.string().regex(BRAND_NAME)
