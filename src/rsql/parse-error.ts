// An error in a search expression, with its position. It is returned, never thrown. It doesn't quote the expression,
// which may hold a caller's data.

export interface ParseError {
  parseError: true
  /** Position of the error, from 0. */
  at: number
  /** A sentence that names the position, counted there from 1. */
  message: string
}

/** `what`: a clause without a full stop, such as `a value is missing`. */
export function parseError(what: string, at: number): ParseError {
  return { parseError: true, at, message: `search, character ${at + 1}: ${what}.` }
}

/** What is wrong with a time in whose offset a blank stands for `+`. */
export const LOST_PLUS = 'the + of this time became a blank; in a URL, write + as %2B'

export function isParseError(value: unknown): value is ParseError {
  return typeof value === 'object' && value !== null && (value as { parseError?: unknown }).parseError === true
}
