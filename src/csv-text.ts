// Writes a text as one cell of a CSV file, quoted as RFC 4180 asks. A text that a spreadsheet would take for a formula
// gets one `'` in front of it, the guard.

// The characters that start a formula, the full-width forms that spreadsheets read as them, and the characters that a
// spreadsheet strips before it looks for a formula.
const FORMULA = /^[=+\-@\t\r\n\0\uff1d\uff0b\uff0d\uff20]/
const SPECIAL = /[",\r\n]/

export function guard(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text
}

/**
 * Removes the guard. A text that had `'` and such a character at its beginning before it was guarded loses this `'`,
 * too.
 */
export function unguarded(text: string): string {
  return text.startsWith("'") && FORMULA.test(text.slice(1)) ? text.slice(1) : text
}

export function cellOf(text: string): string {
  const guarded = guard(text)
  return SPECIAL.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}
