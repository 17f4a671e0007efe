// Texts for older protocol versions, which allow printable ASCII only. Other characters are transliterated as banks do
// (ü becomes ue). The caller handles characters that can't be transliterated.
import transliterate from '@sindresorhus/transliterate'

const FOREIGN = /[^\x20-\x7e]+/g
/** Typographic apostrophes and quotes occur in names, and the package leaves them unchanged. */
const QUOTES: [string, string][] = [
  ['‘', "'"],
  ['’', "'"],
  ['“', '"'],
  ['”', '"'],
]

/** The text transliterated. Characters without an ASCII form stay as they are: see `isAscii`. */
export function toAscii(text: string): string {
  // Only characters outside ASCII are passed on: the package would drop ASCII's own ^ and ` as diacritics.
  return text.normalize('NFKC').replace(FOREIGN, foreign => transliterate(foreign, { customReplacements: QUOTES }))
}

export function isAscii(text: string): boolean {
  return !/[^\x20-\x7e]/.test(text)
}

/** The text with a question mark for each character that can't be transliterated; for texts that can't be left out. */
export function markForeign(text: string): string {
  return Array.from(text, one => (isAscii(one) ? one : '?')).join('')
}
