// What is wrong with a search expression, and where: a value, never thrown. It doesn't quote the expression, of which
// nothing is ours to repeat.

export interface Misread {
  misread: true
  /** Characters before it, from 0. */
  at: number
  /** A sentence that names the position, counted from 1. */
  message: string
}

/** `what`: without subject and full stop, such as `a value is missing`. */
export function misread(what: string, at: number): Misread {
  return { misread: true, at, message: `search, character ${at + 1}: ${what}.` }
}

export function isMisread(value: unknown): value is Misread {
  return typeof value === 'object' && value !== null && (value as { misread?: unknown }).misread === true
}
