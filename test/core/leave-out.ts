// Takes what belongs to a feature out of the text of a composition: the imports of files that are gone, and each element
// that names what they gave. It knows the layout of this project's code (biome), not the language.

/** Finds an import's names and where it comes from. */
const IMPORT = /^(?:import|export) (?:type )?(?:(\{[^}]*\}|\* as \w+|\w+) from )?'([^']+)'$/gm
const DYNAMIC = /\bimport\('([^']+)'\)/g

/** The text without imports for which `isGone` holds, and without the elements that name what these gave. */
export function leaveOut(text: string, isGone: (specifier: string) => boolean): string {
  const gone: string[] = []
  let left = text.replace(IMPORT, (whole, given: string | undefined, specifier: string) => {
    if (!isGone(specifier)) return whole
    gone.push(...(given ?? '').split(/[{},]/).flatMap(nameOf))
    return ''
  })
  for (const name of gone) left = withoutAll(left, new RegExp(`(?<![.\\w$'])${name}\\b(?!['-])`))
  for (;;) {
    const found = [...left.matchAll(DYNAMIC)].find(([, specifier = '']) => isGone(specifier))
    if (!found) return left
    left = withoutElement(left, found.index)
  }
}

const nameOf = (given: string): string[] =>
  given
    .trim()
    .replace(/^type /, '')
    .replace(/^.* as /, '')
    .match(/^\w+$/) ?? []

function withoutAll(text: string, name: RegExp): string {
  for (let left = text; ; ) {
    const at = left.replace(COMMENTS, blank).search(name)
    if (at < 0) return left
    left = withoutElement(left, at)
  }
}

const COMMENTS = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm
const TEXTS = /'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g
const blank = (text: string) => text.replace(/[^\n]/g, ' ')

/**
 * The text without the smallest element that holds the position `at`: a name of a clause `extends`, an element of a list, a
 * member, a statement. An argument goes with its call.
 */
export function withoutElement(text: string, at: number): string {
  const plain = text.replace(COMMENTS, blank).replace(TEXTS, blank)
  const heritage = heritageOf(plain, at)
  if (heritage) return text.slice(0, heritage.from) + text.slice(heritage.to)
  const open = openingOf(plain, at)
  const close = open < 0 ? plain.length : closingOf(plain, open)
  const [from, to] = isListed(plain, open, close) ? listed(plain, open, close, at) : stated(plain, open, close, at)
  return text.slice(0, from) + text.slice(to)
}

/** The clause `extends` of an interface, if `at` is in it. */
function heritageOf(plain: string, at: number): { from: number; to: number } | undefined {
  const start = plain.lastIndexOf('\n', at) + 1
  const [head = '', before = ''] = /^(.*\binterface \w+(?:<.*>)? extends )(.*?) \{/s.exec(plain.slice(start))
    ? (/^(.*? extends )/.exec(plain.slice(start)) ?? [])
    : []
  if (head === '') return undefined
  const from = start + before.length
  const to = plain.indexOf(' {', from)
  if (at < from || at > to) return undefined
  const names = plain.slice(from, to)
  if (!names.includes(',')) return { from: from - ' extends '.length, to }
  const comma = names.lastIndexOf(',', at - from)
  const next = names.indexOf(',', at - from)
  return next < 0 ? { from: from + comma, to } : { from: from + comma + 1, to: from + next + 1 }
}

/** The bracket that opens what holds `at`; parentheses don't count. -1: none. */
function openingOf(plain: string, at: number): number {
  let depth = 0
  for (let i = at - 1; i >= 0; i -= 1) {
    const sign = plain[i] ?? ''
    if (')]}'.includes(sign)) depth += 1
    else if ('([{'.includes(sign)) {
      if (depth > 0) depth -= 1
      else if (sign !== '(') return i
    }
  }
  return -1
}

function closingOf(plain: string, open: number): number {
  let depth = 0
  for (let i = open; i < plain.length; i += 1) {
    const sign = plain[i] ?? ''
    if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign)) {
      depth -= 1
      if (depth === 0) return i
    }
  }
  return plain.length
}

/** Whether the elements between the brackets are separated by commas; else each begins a line. */
function isListed(plain: string, open: number, close: number): boolean {
  if (open < 0) return false
  if (plain[open] === '[') return true
  if (
    !/(?:[=(,:[?&|]|\breturn|\bimport|\bexport|\btype|\bsatisfies|\bconst)\s*$/.test(
      plain.slice(Math.max(0, open - 12), open),
    )
  )
    return false
  return commas(plain, open, close).length > 0
}

function commas(plain: string, open: number, close: number): number[] {
  const found: number[] = []
  let depth = 0
  for (let i = open + 1; i < close; i += 1) {
    const sign = plain[i] ?? ''
    if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign)) depth -= 1
    else if (sign === ',' && depth === 0) found.push(i)
  }
  return found
}

function listed(plain: string, open: number, close: number, at: number): [number, number] {
  const ends = commas(plain, open, close)
  const before = ends.filter(i => i < at).at(-1) ?? open
  const after = ends.find(i => i >= at)
  return after === undefined ? [before === open ? open + 1 : before, close] : [before + 1, after + 1]
}

/** The lines of the statement or member: it begins a line as far to the right as its neighbours. */
function stated(plain: string, open: number, close: number, at: number): [number, number] {
  const begin = open < 0 ? 0 : plain.indexOf('\n', open) + 1
  if (open >= 0 && (begin === 0 || begin > close)) return [open + 1, close]
  const indent = /^ */.exec(plain.slice(begin).replace(/^\s*\n/, ''))?.[0].length ?? 0
  const starts = [...plain.slice(begin, close).matchAll(/^( *)(?=[^\s)}\]|&.?:])/gm)]
    .filter(([, spaces = '']) => spaces.length === indent)
    .map(({ index }) => begin + index)
  const from = starts.filter(i => i <= at).at(-1) ?? begin
  const next = starts.find(i => i > at)
  if (next !== undefined) return [from, next]
  return [from, open < 0 ? plain.length : plain.lastIndexOf('\n', close) + 1]
}
