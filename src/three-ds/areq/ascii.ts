// Texts for the older editions of the messages: printable ASCII. Other characters are transliterated as a bank does (ü
// is ue); the caller handles those that can't be.
import transliterate from '@sindresorhus/transliterate'

const FOREIGN = /[^\x20-\x7e]+/g
/** Apostrophes and quotes of books stand in names, and the package leaves them. */
const QUOTES: [string, string][] = [
  ['‘', "'"],
  ['’', "'"],
  ['“', '"'],
  ['”', '"'],
]

/** Characters that have no ASCII stay as they are: see `isAscii`. */
export function toAscii(text: string): string {
  // Only what is foreign: the package takes ASCII's own ^ and ` for marks, and drops them.
  return text.normalize('NFKC').replace(FOREIGN, foreign => transliterate(foreign, { customReplacements: QUOTES }))
}

export function isAscii(text: string): boolean {
  return !/[^\x20-\x7e]/.test(text)
}

/** A question mark for each character that can't be transliterated: for texts that can't be left out. */
export function markForeign(text: string): string {
  return Array.from(text, one => (isAscii(one) ? one : '?')).join('')
}
