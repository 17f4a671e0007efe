// Makes text that others wrote harmless to show: what a terminal obeys, what turns or breaks a line, and what nobody sees
// becomes a visible form. The edges use it (cli/terminal.ts, log.ts, metrics.ts, ops.ts, the lines of progress), so no caller has to.
// It never changes data that a program reads from a file or a pipe.

/**
 * By the classes of Unicode, not by a list: control and format characters, lone surrogates, private and unassigned code
 * points, separators of lines and paragraphs, and whatever else is drawn as nothing.
 */
const UNSAFE = String.raw`[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]`

/**
 * ZWNJ and ZWJ are letters' forms in the spelling of these scripts (Persian, Hindi, Sinhala, …), and stay behind a letter or
 * sign of one of them. Anywhere else they only make two names look the same.
 */
const JOINING = ['Arab', 'Syrc', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh']
const JOINS = String.raw`(?<=[${JOINING.map(script => String.raw`\p{scx=${script}}`).join('')}])[\u200c\u200d]`

const IN_TEXT = new RegExp(`(?!${JOINS})${UNSAFE}`, 'gu')
/** The line feeds of a JSON text stand between its tokens: JSON.stringify escapes those of strings. */
const IN_JSON = new RegExp(String.raw`(?!\n)${UNSAFE}`, 'gu')
const PLAIN = /^[ -~]*$/
const PLAIN_JSON = /^[\n -~]*$/

/**
 * Text for one line that a person reads: `\u{9b}` in place of each such character, line feeds and tabs included. Cleaning a
 * clean text changes nothing, so a backslash stays one: JSON alone tells `\u{9b}` from its six characters.
 */
export function cleanText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(IN_TEXT, sign => `\\u{${sign.codePointAt(0)?.toString(16)}}`)
}

/** A JSON text in which they are escaped: a program reads the same values from it. */
export function cleanJson(json: string): string {
  return PLAIN_JSON.test(json) ? json : json.replace(IN_JSON, escaped)
}

function escaped(sign: string): string {
  const units = Array.from({ length: sign.length }, (_, at) => sign.charCodeAt(at))
  return units.map(unit => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
