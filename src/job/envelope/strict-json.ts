// Parses JSON objects strictly: only UTF-8, and no name twice within an object, because another parser of the same
// bytes might take the other value (RFC 7515, 4). Deeply nested input is accepted.
import { isAscii } from 'node:buffer'

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/** The parsed object; undefined for anything that isn't a strict JSON object. */
export function readObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    // ASCII is copied, where the decoder would look at each byte.
    const text = isAscii(bytes) ? bytes.toString('latin1') : UTF_8.decode(bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const namesOnce = isPlain(value, text) || countColons(text) === countMembers(value)
    return namesOnce ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/**
 * A text that equals the output of JSON.stringify has no name twice. Most texts are like that, and comparing takes a
 * third of the time of counting.
 */
function isPlain(value: unknown, text: string): boolean {
  try {
    return JSON.stringify(value) === text
  } catch {
    // JSON.stringify failed, because the value is nested too deeply.
    return false
  }
}

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

/**
 * Counts the members in the text, because JSON.parse silently keeps the last of two equal names. `json` must have
 * passed JSON.parse.
 */
function countColons(json: string): number {
  let count = 0
  let inString = false
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index)
    if (code === QUOTE) inString = !inString
    else if (inString) index += code === BACKSLASH ? 1 : 0
    else if (code === COLON) count += 1
  }
  return count
}

function countMembers(whole: object): number {
  let count = 0
  const open: object[] = [whole]
  for (let value = open.pop(); value; value = open.pop()) {
    const members: unknown[] = Object.values(value)
    if (!Array.isArray(value)) count += members.length
    for (const member of members) if (typeof member === 'object' && member !== null) open.push(member)
  }
  return count
}
