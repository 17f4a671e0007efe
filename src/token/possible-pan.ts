// Whether a name could be somebody's card number. This check is for names that are stored in clear: an idempotency key,
// a batch's id, a report's parameter. It knows no card; src/job/pan-in-names.ts checks names for the number of the
// job's own card.
import { detectBrand, isPossibleLength } from './brand.ts'
import { digitsOf, hasDigits, passesLuhn, plainOf, withoutPadding } from './pan.ts'

// Digits without gaps, or in the groups that are printed on cards. The pattern is a look-ahead, which consumes nothing:
// so every group of digits is tried as a beginning, and a group that isn't part of a card number hides none that begins
// behind it.
const CANDIDATE = /(?<!\d)(?=0*(\d{13,19}|\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{1,7}|\d{4}[ -]\d{6}[ -]\d{4,5})(?!\d))/g

const UUID = '(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])'
const HEX_WORD = String.raw`(?<![0-9a-z])(?=\d*[a-f])[0-9a-f]{16,}(?![0-9a-z])`
/** Hexadecimal within a longer word, as in `0x…`, is recognised by letters between its digits. */
const HEX_PART = String.raw`(?<![0-9a-f])(?=[a-f]*\d+[a-f]+\d)[0-9a-f]{16,}(?![0-9a-f])`
/** Random names are left out: of a million of them, thousands hold digits that could be a card number. */
const RANDOM = new RegExp(`${UUID}|${HEX_WORD}|${HEX_PART}`, 'gi')

const DASHES = /\p{Pd}/gu
const LEAST = 13

/** UUIDs that aren't part of a longer word. */
export const UUIDS = new RegExp(UUID, 'gi')

/**
 * Whether the text holds 13 to 19 digits, together or in the groups that are printed on cards, that have a network's
 * prefix and length and pass Luhn; no digit may stand next to them. UUIDs are left out, and so are hexadecimal words of
 * 16 or more characters with a letter. Within a longer word the letter must stand between two digits.
 */
export function holdsPossiblePan(text: string): boolean {
  if (!hasDigits(text, LEAST)) return false
  const plain = plainOf(text).replace(DASHES, '-')
  if (digitsOf(plain).length < LEAST) return false
  const candidates = [...plain.replace(RANDOM, 'x').matchAll(CANDIDATE)]
  return candidates.some(([, found = '']) => isPossiblePan(digitsOf(found)))
}

function isPossiblePan(given: string): boolean {
  const digits = withoutPadding(given)
  const brand = detectBrand(digits)
  return brand !== undefined && isPossibleLength(digits, brand) && passesLuhn(digits)
}
