// Could a name be somebody's card number? Asked of names that are stored in clear as they are: an idempotency key, a
// batch's id, a report's parameter. It knows no card; whether a name holds the job's own card is pan-in-names.ts' question.
import { detectBrand, isPossibleLength } from './brand.ts'
import { digitsOf, passesLuhn, plainOf } from './pan.ts'

// In one piece, or in the groups that cards are printed in. A number may begin at any digit group: the look-ahead
// takes nothing, so that a group which is no card's hides none that begins behind it.
const CANDIDATE = /(?<!\d)(?=(\d{13,19}|\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{1,7}|\d{4}[ -]\d{6}[ -]\d{4,5})(?!\d))/g

const UUID = '(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])'
const HEX_WORD = String.raw`(?<![0-9a-z])(?=\d*[a-f])[0-9a-f]{16,}(?![0-9a-z])`
/** Behind or before other letters, as in `0x…`: hexadecimal is what has letters between its digits. */
const HEX_PART = String.raw`(?<![0-9a-f])(?=[a-f]*\d+[a-f]+\d)[0-9a-f]{16,}(?![0-9a-f])`
/** Random names that are no card's: of a million of them, thousands hold digits that would pass for one. */
const RANDOM = new RegExp(`${UUID}|${HEX_WORD}|${HEX_PART}`, 'gi')

const DASHES = /\p{Pd}/gu
const LEAST = 13

/** With nothing beside them that would make them part of something else. */
export const UUIDS = new RegExp(UUID, 'gi')

/**
 * Whether the text holds 13 to 19 digits, with no digit beside them, that have a network's prefix and length and pass
 * Luhn. UUIDs, and hexadecimal strings of 16 and more characters that hold a letter, are passed over.
 */
export function holdsPossiblePan(text: string): boolean {
  const plain = plainOf(text).replace(DASHES, '-')
  if (digitsOf(plain).length < LEAST) return false
  const candidates = [...plain.replace(RANDOM, 'x').matchAll(CANDIDATE)]
  return candidates.some(([, found = '']) => isPossiblePan(digitsOf(found)))
}

function isPossiblePan(digits: string): boolean {
  const brand = detectBrand(digits)
  return brand !== undefined && isPossibleLength(digits, brand) && passesLuhn(digits)
}
