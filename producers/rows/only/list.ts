// The rows that `--only` wants, and which rows of a file are among them. A list names references, customers, or both
// together; a plan of `migrate diff` also names rows that have no reference, by their place in the file.
import { createHash } from 'node:crypto'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import { type Row, skipRow } from '../record.ts'

export const LISTED = ['reference', 'customer', 'account', 'line', 'item'] as const
type Member = (typeof LISTED)[number]

/** One entry of a list. A row is wanted if it has all of these values. */
export type Entry = Partial<Record<Member, string>>

export interface OnlyList {
  /** The entries by the members that they have. */
  shapes: readonly Shape[]
  /** The list names customers or accounts, so a row is compared by its owner, too. */
  namesOwners: boolean
  /** The digest of the file for which the list was made; undefined for a list that fits any file. */
  inputSha256: string | undefined
  /** The entries that a row of the files read so far has, as `entryKey` writes them. */
  found: Set<string>
  /** Hex digest of the sorted entries: the same list in another order is the same list. */
  sha256: string
}

interface Shape {
  members: readonly Member[]
  keys: Set<string>
}

export interface ListBuilder {
  add(entry: Entry): void
  end(inputSha256?: string): OnlyList
}

export function openList(): ListBuilder {
  const shapes = new Map<string, Shape>()
  return {
    add(entry) {
      const members = LISTED.filter(name => entry[name] !== undefined)
      const name = members.join()
      const shape = shapes.get(name) ?? { members, keys: new Set() }
      shapes.set(name, shape)
      shape.keys.add(members.map(member => entry[member]).join('\0'))
    },
    end(inputSha256) {
      const namesOwners = [...shapes.values()].some(({ members }) => members.some(isOfOwner))
      return {
        shapes: [...shapes.values()],
        namesOwners,
        inputSha256,
        found: new Set(),
        sha256: digestOf(shapes, inputSha256),
      }
    },
  }
}

const isOfOwner = (member: Member) => member === 'customer' || member === 'account'

function digestOf(shapes: ReadonlyMap<string, Shape>, inputSha256: string | undefined): string {
  const hash = createHash('sha256')
  for (const [name, { keys }] of [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`\0${name}\n`)
    for (const key of [...keys].sort()) hash.update(`${key}\n`)
  }
  if (inputSha256 !== undefined) hash.update(`\0${inputSha256}\n`)
  return hash.digest('hex')
}

/** What a list can name of a row. */
type Listable = Pick<Row, 'reference' | 'owner' | 'line' | 'fileLine' | 'item'>

/** Whether the list names this row. */
export function isListed(row: Listable, { shapes }: Pick<OnlyList, 'shapes'>): boolean {
  return shapes.some(shape => keyOf(row, shape) !== undefined)
}

/** The entry of this shape that names the row. */
function keyOf(row: Listable, { members, keys }: Shape): string | undefined {
  const values = members.map(member => memberOf(row, member))
  const key = values.includes(undefined) ? undefined : values.join('\0')
  return key !== undefined && keys.has(key) ? key : undefined
}

const entryKey = ({ members }: Shape, key: string) => `${members.join()}\0${key}`

export interface Listing {
  listed: number
  found: number
  /** The first entries that no row has; digits are hidden in those that could be a card number. */
  missing: readonly string[]
}

const MISSING_SHOWN = 5

/** How much of the list the files read so far have. */
export function listingOf({ shapes, found }: OnlyList): Listing {
  const listing = { listed: 0, found: 0, missing: [] as string[] }
  for (const shape of shapes) {
    for (const key of shape.keys) {
      // A guarded text of our own results is listed twice, as it stands and without its apostrophe.
      const bare = key.startsWith("'") ? key.slice(1) : undefined
      if (bare !== undefined && shape.keys.has(bare)) continue
      listing.listed += 1
      const isFound = found.has(entryKey(shape, key)) || found.has(entryKey(shape, `'${key}`))
      if (isFound) listing.found += 1
      else if (listing.missing.length < MISSING_SHOWN) listing.missing.push(shownEntry(key))
    }
  }
  return listing
}

/** What is said of a list of which the file has less; undefined if it has all. */
export function shortfallOf(listing: Listing | undefined): string | undefined {
  if (listing === undefined || listing.found === listing.listed) return undefined
  const { listed, found, missing } = listing
  return `--only: listed ${listed}, found ${found}; not found (first): ${missing.join(', ')}`
}

const shownEntry = (key: string) =>
  key
    .split('\0')
    .map(text => JSON.stringify(couldLookLikeCard(text) ? text.replace(/\p{N}/gu, '*') : text))
    .join(' ')

/**
 * Marks a row as skipped unless it is listed, and notes which entries are found. A rejected row in which a listed member can't be read isn't skipped, because
 * it may be wanted.
 */
export function keepOnly(row: Row, only: OnlyList): Row {
  const entries = only.shapes.flatMap(shape => {
    const key = keyOf(row, shape)
    return key === undefined ? [] : [entryKey(shape, key)]
  })
  for (const entry of entries) only.found.add(entry)
  if (row.skipped !== undefined || entries.length > 0) return row
  const isUnread = only.shapes.some(({ members }) => members.some(member => memberOf(row, member) === undefined))
  if (row.rejected !== undefined && isUnread) return row
  // The number stays, so that no text that looks like it is shown.
  const { line, reference, number, fileLine, item, repairs, kept, owner } = row
  return { ...skipRow(line, 'not_listed', reference), number, fileLine, item, repairs: repairs && [], kept, owner }
}

/** Undefined where the row doesn't say it, or can't be read. */
function memberOf({ reference, owner, line, fileLine, item = '' }: Listable, member: Member): string | undefined {
  switch (member) {
    case 'reference':
      return reference
    case 'line':
      return `${fileLine ?? line}`
    case 'item':
      return item
    default:
      if (owner === 'none') return ''
      if (owner === undefined || owner === 'unknown') return undefined
      return member === 'customer' ? owner.customerId : owner.providerAccount
  }
}
