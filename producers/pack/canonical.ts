// The canonical text of what a pack holds: members sorted by name, two blanks per level, LF at the end. Equal values
// have the same text, in whatever order their members were.

export function canonicalText(value: unknown): string {
  return `${JSON.stringify(sorted(value), null, 2)}\n`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}
