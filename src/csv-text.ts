// Writes a text as one cell of a CSV file, quoted as RFC 4180 asks. A text that a spreadsheet would take for a formula
// gets one `'` in front of it, the guard.

// The characters that start a formula, and the full-width and small forms that spreadsheets read as them. White space,
// control characters and others that nobody sees count as nothing before one: a spreadsheet strips them, or a person does.
const NOTHING = String.raw`[\s\p{Z}\p{Cc}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800]`
const STARTS = String.raw`[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]`
const FORMULA = new RegExp(String.raw`^(?:[\t\r\n\0]|${NOTHING}*${STARTS})`, 'u')
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
