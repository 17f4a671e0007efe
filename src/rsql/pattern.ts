// The patterns that `=regex=` takes: a subset in which PostgreSQL's matcher takes a time that grows with the text and
// the pattern and not with their product's power. No back-references, no look-around, no options; repetitions have a
// bound that nesting multiplies. What is left means the same in PostgreSQL as in JavaScript, but for letters beyond ASCII in `\w`.
// It is found anywhere in the text unless `^` and `$` anchor it.

export const PATTERN = { charactersMax: 128, depthMax: 5, repeatsMax: 256 } as const

const ESCAPED = /[\\^$.*+?()[\]{}|\-/]/
const CLASSES = /[dswDSW]/

interface Group {
  /** What its atoms may be repeated to at most, one after the other. */
  repeats: number
  /** The last thing may be repeated, and may take as much. */
  atom: number
  /** A branch without anything in it is refused. */
  empty: boolean
}

/** What is wrong with the pattern and where (from 0), or undefined. */
export function checkPattern(pattern: string): { what: string; at: number } | undefined {
  if (pattern === '' || pattern.length > PATTERN.charactersMax)
    return { what: `a pattern has 1 to ${PATTERN.charactersMax} characters`, at: 0 }
  const open: Group[] = []
  let group: Group = { repeats: 0, atom: 0, empty: true }
  const put = (size: number) => {
    group.repeats += group.atom
    group.atom = size
    group.empty = false
  }
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern[at] as string
    switch (sign) {
      case '(':
        if (pattern[at + 1] === '?') return { what: 'groups with ? are not taken', at }
        if (open.length === PATTERN.depthMax) return { what: `groups nest ${PATTERN.depthMax} deep at most`, at }
        open.push(group)
        group = { repeats: 0, atom: 0, empty: true }
        break
      case ')': {
        const outer = open.pop()
        if (!outer || group.empty) return { what: 'this parenthesis closes nothing', at }
        const size = group.repeats + group.atom
        group = outer
        put(size)
        break
      }
      case '|':
        if (group.empty) return { what: 'an alternative is empty', at }
        group.repeats += group.atom
        group.atom = 0
        group.empty = true
        break
      case '^':
      case '$':
        // An anchor isn't repeated.
        group.repeats += group.atom
        group.atom = 0
        group.empty = false
        break
      case '*':
      case '+':
      case '?':
      case '{': {
        const bound = sign === '{' ? /^\{(\d{1,3})(?:,(\d{0,3}))?\}/.exec(pattern.slice(at)) : undefined
        if (bound === null) return { what: 'this is no repetition', at }
        if (group.atom === 0) return { what: 'there is nothing to repeat', at }
        const times = Math.max(2, Number(bound?.[1] ?? 1), Number(bound?.[2] ?? 1))
        if (bound?.[2] && Number(bound[2]) < Number(bound[1])) return { what: 'this is no repetition', at }
        if (group.atom * times + group.repeats > PATTERN.repeatsMax) return { what: 'repetitions are too large', at }
        group.repeats += group.atom * times
        group.atom = 0
        at += (bound?.[0].length ?? 1) - 1
        break
      }
      case '[': {
        const end = endOfSet(pattern, at)
        if (end === undefined) return { what: 'this set of characters is not taken', at }
        at = end
        put(1)
        break
      }
      case '\\': {
        const next = pattern[at + 1] ?? ''
        if (!ESCAPED.test(next) && !CLASSES.test(next)) return { what: 'this escape is not taken', at }
        at += 1
        put(1)
        break
      }
      case ']':
      case '}':
        return { what: 'a bracket is to be escaped', at }
      default:
        put(1)
    }
  }
  if (open.length > 0) return { what: 'a parenthesis is not closed', at: pattern.length }
  return group.empty ? { what: 'an alternative is empty', at: pattern.length } : undefined
}

const PLAIN = /[A-Za-z0-9 _.,:;@#%&+=*?()/|$<>!~{}-]/

/** Characters and ranges of letters or digits; no classes of PostgreSQL's (`[:alpha:]`), no negated escapes. */
function endOfSet(pattern: string, start: number): number | undefined {
  let at = start + 1
  if (pattern[at] === '^') at += 1
  const first = at
  for (; at < pattern.length; at += 1) {
    const sign = pattern[at] as string
    if (sign === ']') return at > first ? at : undefined
    if (sign === '\\') {
      at += 1
      if (!ESCAPED.test(pattern[at] ?? '') && !/[ds]/.test(pattern[at] ?? '')) return undefined
      continue
    }
    if (!PLAIN.test(sign)) return undefined
    if (sign !== '-') continue
    // A dash is a range between two letters of one case or two digits, or it is escaped.
    const range = pattern.slice(at - 1, at + 2)
    if (!/^([a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)$/.test(range) || (range[0] ?? '') > (range[2] ?? '')) return undefined
    if (at - 1 < first || pattern[at - 2] === '\\') return undefined
    at += 1
    if (pattern[at + 1] === '-') return undefined
  }
  return undefined
}
