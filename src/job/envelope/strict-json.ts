// Reads JSON objects strictly: UTF-8 only, and no name twice within an object, because another reader of the same bytes
// might take the other value (RFC 7515, 4). Deep nesting is accepted.

/** The object, or undefined for anything else. */
export function readObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const namesOnce = isPlain(value, text) || countColons(text) === countMembers(value)
    return namesOnce ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/**
 * A text that equals the output of JSON.stringify has no name twice. Most texts do, and comparing takes a third of the
 * time.
 */
function isPlain(value: unknown, text: string): boolean {
  try {
    return JSON.stringify(value) === text
  } catch {
    // Nested deeper than JSON.stringify can go.
    return false
  }
}

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c

/**
 * Counts the members in the text, since JSON.parse keeps the last of two equal names. JSON.parse has accepted `json`
 * before.
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
