// Finds the columns that a profile names in the header of a file. All missing columns are reported at once, with the
// names that exist; a name is shown only if it can't be card data.
import { FileError } from '../file-error.ts'
import { KEPT } from '../kept.ts'
import { looksLikeData, shown } from '../layout.ts'
import { isSecurityCode } from '../security-code.ts'
import { isCardData } from './profile-rules.ts'
import { ECHO, type FieldUse } from './records.ts'
import { isOfReturn } from './return-shape.ts'

export interface Header {
  /** The line of the header; undefined for a file without one. */
  line: number | undefined
  names: readonly string[]
  anyCase: boolean
  /** Blanks around a name are ignored. */
  trim: boolean
  /** Names of columns that are never read. */
  drop: readonly string[]
}

const NAMES_SHOWN_MAX = 100

/** The position of each use's column. */
export function positionsOf(header: Header, uses: readonly FieldUse[]): number[] {
  const { line, anyCase, trim } = header
  const place = line === undefined ? 'The file' : `Line ${line}`
  if (line !== undefined && header.names.some(looksLikeData)) {
    throw new FileError('usage', `${place} holds data, not the names of columns.`, 'Set format.header to none.')
  }
  const plain = (name: string) => {
    const blunt = trim ? name.trim() : name
    return anyCase ? blunt.toLowerCase() : blunt
  }
  const names = header.names.map(plain)
  const found = uses.map(({ field }) => find(names, plain(field)))
  const missing = uses.filter((_, index) => found[index]?.length === 0)
  if (missing.length > 0) throw refuseMissing(place, missing, header.names)
  const doubled = uses.find((_, index) => (found[index]?.length ?? 0) > 1)
  if (doubled !== undefined) {
    const wrong = `${place}: several columns are called ${shown(doubled.field)}, which ${doubled.path} names.`
    throw new FileError('usage', wrong, `Say which: the second one is ${shown(`${doubled.field}#2`)}.`)
  }
  const positions = found.map(([position = -1]) => position)
  const dropped = new Set(header.drop.flatMap(name => find(names, plain(name))))
  for (const [index, name] of header.names.entries()) if (isSecurityCode(name)) dropped.add(index)
  refuseUse('a column that is never read', uses, positions, position => dropped.has(position))
  const card = new Set(positions.filter((_, index) => isCardData(uses[index]?.path ?? '')))
  const repeats = ({ path }: FieldUse) => path === ECHO || isOfReturn(path)
  refuseUse('a column of card data', uses, positions, (position, use) => repeats(use) && card.has(position))
  // A field may name a column by its number, so a column of card data is recognised by its place.
  return positions.map((position, index) => (uses[index]?.path === KEPT && card.has(position) ? -1 : position))
}

function refuseUse(
  what: string,
  uses: readonly FieldUse[],
  positions: readonly number[],
  isWrong: (position: number, use: FieldUse) => boolean,
): void {
  const use = uses.find((one, index) => isWrong(positions[index] ?? -1, one))
  if (use !== undefined) throw new FileError('usage', `${use.path} names ${what}.`, 'Leave it out.')
}

/** All columns that the name may mean; only a name without `#` can mean several. */
function find(names: readonly string[], name: string): number[] {
  const literal = names.flatMap((one, index) => (one === name ? [index] : []))
  if (literal.length > 0) return literal
  const numbered = /^(.*)#(\d{1,5})$/s.exec(name)
  if (numbered === null) return []
  const [, base = '', digits = ''] = numbered
  const number = Number(digits)
  const among =
    base === '' ? names.map((_, index) => index) : names.flatMap((one, index) => (one === base ? [index] : []))
  const position = among[number - 1]
  return position === undefined ? [] : [position]
}

function refuseMissing(place: string, missing: readonly FieldUse[], names: readonly string[]): FileError {
  const list = [...new Set(missing.map(({ field, path }) => `${shown(field)} (${path})`))].join(', ')
  const given = names.filter(name => !isSecurityCode(name))
  const more = given.length > NAMES_SHOWN_MAX ? ` and ${given.length - NAMES_SHOWN_MAX} more` : ''
  const existing = given.slice(0, NAMES_SHOWN_MAX).map(shown).join(', ')
  const next = `The columns are ${existing}${more}. Correct the profile, or its delimiter.`
  return new FileError('usage', `${place}: no column ${list}.`, next)
}
