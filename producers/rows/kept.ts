// Texts of a file that its rows keep as they stand there, for other files that repeat them.

/** The path of a field that a file of rejected rows repeats. */
export const KEPT = '--rejects'

/** A field whose texts are kept as they stand in the file. */
export interface KeptField {
  field: string
  /** What names it: KEPT, or the member of the profile. */
  path: string
}

const KEPT_MAX = 1_000
const NUMERALS = /\p{N}/gu

/**
 * A text as a row keeps it. A longer text is cut to its beginning, with a mark; its digits are masked, because they
 * could be part of a card number. It is copied: a slice would hold the whole text in memory.
 */
export function keptText(text: string): string {
  if (text.length <= KEPT_MAX) return text
  return `${Buffer.from(text.slice(0, KEPT_MAX)).toString().replace(NUMERALS, '*')}…`
}

export function isCut(kept: string): boolean {
  return kept.length > KEPT_MAX
}
