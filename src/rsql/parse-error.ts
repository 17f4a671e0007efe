// What is wrong with a search expression, and where: a value, never thrown. It doesn't quote the expression, of which
// nothing is ours to repeat.

export interface ParseError {
  parseError: true
  /** Characters before it, from 0. */
  at: number
  /** A sentence that names the position, counted from 1. */
  message: string
}

/** `what`: without subject and full stop, such as `a value is missing`. */
export function parseError(what: string, at: number): ParseError {
  return { parseError: true, at, message: `search, character ${at + 1}: ${what}.` }
}

export function isParseError(value: unknown): value is ParseError {
  return typeof value === 'object' && value !== null && (value as { parseError?: unknown }).parseError === true
}
