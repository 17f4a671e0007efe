// The names of fields in a profile, and templates that make one text from several fields. Where a field is in a file is
// decided elsewhere.

/**
 * `name`; `name#2`, the second column of that name; `#3`, the third column; in JSON a path `card.number`, and `^.id`
 * for a member of the object around the record. Braces are reserved for templates.
 */
export const FIELD = /^[^{}\r\n\0]{1,200}$/

/** `{account}-{number:last4}`: field names in braces, and text around them. */
export const TEMPLATE = /^(?:[^{}\r\n\0]*\{[^{}\r\n\0]{1,200}\})+[^{}\r\n\0]*$/

export interface Part {
  /** The text before the field. */
  before: string
  field: string
  /** Only the last four digits of the field. */
  last4: boolean
}

export interface Template {
  parts: readonly Part[]
  /** The text after the last field. */
  after: string
}

const LAST4 = ':last4'

export function parseTemplate(text: string): Template {
  const parts: Part[] = []
  let end = 0
  for (const match of text.matchAll(/\{([^{}]+)\}/g)) {
    const name = match[1] ?? ''
    const last4 = name.endsWith(LAST4)
    parts.push({ before: text.slice(end, match.index), field: last4 ? name.slice(0, -LAST4.length) : name, last4 })
    end = match.index + match[0].length
  }
  return { parts, after: text.slice(end) }
}
