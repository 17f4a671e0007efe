// One text as a cell of the results: quoted as RFC 4180 asks, and guarded so that no spreadsheet takes it for a
// formula. The guard is one `'` in front; nothing else of the text is changed.

// What starts a formula in a spreadsheet, full-width forms included, and what is cut off before it looks.
const FORMULA = /^[\t\r\n=+\-@\uff1d\uff0b\uff0d\uff20]/
const SPECIAL = /[",\r\n]/

export function cellOf(text: string): string {
  const guarded = FORMULA.test(text) ? `'${text}` : text
  return SPECIAL.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}
