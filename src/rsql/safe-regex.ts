// Checks patterns of `=regex=`. Allowed is a subset for which PostgreSQL's matcher never needs exponential time: no
// back-references, no look-around, no options, and a limit on the product of nested repetitions. An allowed pattern
// means the same in PostgreSQL as in JavaScript, except for letters beyond ASCII in `\w`. A match may stand anywhere in
// the text unless `^` and `$` anchor it.

export const PATTERN = { charactersMax: 128, depthMax: 5, repeatsMax: 256 } as const

const ESCAPED = /[\\^$.*+?()[\]{}|\-/]/
const CLASSES = /[dswDSW]/

interface Group {
  /** How often the atoms of the group are repeated so far, in total. */
  repeats: number
  /** The size of the last atom, which a quantifier may follow; 0: none may. */
  atom: number
  /** The current branch has no element yet. Empty branches are refused. */
  empty: boolean
}

interface Scan {
  pattern: string
  group: Group
  /** The groups that enclose this group. */
  outer: Group[]
}

/** Reads the element at `at`. Returns the position after the element, or a text that says what is wrong. */
type Reader = (scan: Scan, at: number) => number | string

const READERS: Readonly<Record<string, Reader>> = {
  '(': openGroup,
  ')': closeGroup,
  '|': nextBranch,
  '^': readAnchor,
  $: readAnchor,
  '*': repeat,
  '+': repeat,
  '?': repeat,
  '{': repeat,
  '[': readSet,
  '\\': readEscape,
  ']': () => 'a bracket is to be escaped',
  '}': () => 'a bracket is to be escaped',
}

/** What is wrong with the pattern and where (from 0); undefined if it is allowed. */
export function checkPattern(pattern: string): { what: string; at: number } | undefined {
  if (pattern === '' || pattern.length > PATTERN.charactersMax)
    return { what: `a pattern has 1 to ${PATTERN.charactersMax} characters`, at: 0 }
  const scan: Scan = { pattern, group: emptyGroup(), outer: [] }
  for (let at = 0; at < pattern.length; ) {
    const next = (READERS[pattern[at] as string] ?? readSign)(scan, at)
    if (typeof next === 'string') return { what: next, at }
    at = next
  }
  if (scan.outer.length > 0) return { what: 'a parenthesis is not closed', at: pattern.length }
  return scan.group.empty ? { what: 'an alternative is empty', at: pattern.length } : undefined
}

const emptyGroup = (): Group => ({ repeats: 0, atom: 0, empty: true })

/** Adds an element to the group. `size`: the size of the element if a quantifier may follow it, else 0. */
function put(group: Group, size: number): void {
  group.repeats += group.atom
  group.atom = size
  group.empty = false
}

function openGroup(scan: Scan, at: number): number | string {
  if (scan.pattern[at + 1] === '?') return 'groups with ? are not taken'
  if (scan.outer.length === PATTERN.depthMax) return `groups nest ${PATTERN.depthMax} deep at most`
  scan.outer.push(scan.group)
  scan.group = emptyGroup()
  return at + 1
}

function closeGroup(scan: Scan, at: number): number | string {
  const { repeats, atom, empty } = scan.group
  const outer = scan.outer.pop()
  if (!outer || empty) return 'this parenthesis closes nothing'
  scan.group = outer
  put(outer, repeats + atom)
  return at + 1
}

function nextBranch({ group }: Scan, at: number): number | string {
  if (group.empty) return 'an alternative is empty'
  put(group, 0)
  group.empty = true
  return at + 1
}

function readAnchor({ group }: Scan, at: number): number {
  put(group, 0)
  return at + 1
}

function repeat({ pattern, group }: Scan, at: number): number | string {
  const bound = pattern[at] === '{' ? /^\{(\d{1,3})(?:,(\d{0,3}))?\}/.exec(pattern.slice(at)) : undefined
  if (bound === null) return 'this is no repetition'
  if (group.atom === 0) return 'there is nothing to repeat'
  const [whole = pattern[at] as string, least = 1, most] = bound ?? []
  if (most && Number(most) < Number(least)) return 'this is no repetition'
  const times = Math.max(2, Number(least), Number(most ?? 1))
  if (group.atom * times + group.repeats > PATTERN.repeatsMax) return 'repetitions are too large'
  group.repeats += group.atom * times
  group.atom = 0
  return at + whole.length
}

function readSet({ pattern, group }: Scan, at: number): number | string {
  const end = endOfSet(pattern, at)
  if (end === undefined) return 'this set of characters is not taken'
  put(group, 1)
  return end + 1
}

function readEscape({ pattern, group }: Scan, at: number): number | string {
  const escaped = pattern[at + 1] ?? ''
  if (!ESCAPED.test(escaped) && !CLASSES.test(escaped)) return 'this escape is not taken'
  put(group, 1)
  return at + 2
}

function readSign({ group }: Scan, at: number): number {
  put(group, 1)
  return at + 1
}

const PLAIN = /[A-Za-z0-9 _.,:;@#%&+=*?()/|$<>!~{}-]/

/**
 * The position after a bracket expression. It may hold characters and ranges of letters or digits, but no classes of
 * PostgreSQL's (`[:alpha:]`) and no negated escapes.
 */
function endOfSet(pattern: string, start: number): number | undefined {
  const first = pattern[start + 1] === '^' ? start + 2 : start + 1
  let at: number | undefined = first
  while (at !== undefined && at < pattern.length) {
    if (pattern[at] === ']') return at > first ? at : undefined
    at = nextInSet(pattern, at)
  }
  return undefined
}

function nextInSet(pattern: string, at: number): number | undefined {
  const sign = pattern[at] as string
  if (sign === '\\') return isEscapedInSet(pattern[at + 1] ?? '') ? at + 2 : undefined
  if (sign === '-') return isRange(pattern, at) ? at + 2 : undefined
  return PLAIN.test(sign) ? at + 1 : undefined
}

const isEscapedInSet = (sign: string): boolean => ESCAPED.test(sign) || /[ds]/.test(sign)

/**
 * Whether a dash makes a range: it stands between two letters of the same case, or between two digits. Any other dash
 * must be escaped.
 */
function isRange(pattern: string, dash: number): boolean {
  const range = pattern.slice(dash - 1, dash + 2)
  if (!/^([a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)$/.test(range) || (range[0] ?? '') > (range[2] ?? '')) return false
  // Neither end of the range may belong to an escape or to another range.
  return pattern[dash - 2] !== '\\' && pattern[dash + 2] !== '-'
}
