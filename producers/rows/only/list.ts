// The rows that `--only` wants, and which rows of a file are among them. A list names references, customers, or both
// together; a plan of `migrate diff` also names rows that have no reference, by their place in the file.
import { createHash } from 'node:crypto'
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
        sha256: digestOf(shapes, inputSha256),
      }
    },
  }
}

const isOfOwner = (member: Member) => member === 'customer' || member === 'account'

/** A list of nothing but references has the digest that earlier releases gave it, because the batch id depends on it. */
function digestOf(shapes: ReadonlyMap<string, Shape>, inputSha256: string | undefined): string {
  const hash = createHash('sha256')
  for (const [name, { keys }] of [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (name !== 'reference') hash.update(`\0${name}\n`)
    for (const key of [...keys].sort()) hash.update(`${key}\n`)
  }
  if (inputSha256 !== undefined) hash.update(`\0${inputSha256}\n`)
  return hash.digest('hex')
}

/** What a list can name of a row. */
type Listable = Pick<Row, 'reference' | 'owner' | 'line' | 'fileLine' | 'item'>

/** Whether the list names this row. */
export function isListed(row: Listable, { shapes }: Pick<OnlyList, 'shapes'>): boolean {
  return shapes.some(({ members, keys }) => {
    const values = members.map(member => memberOf(row, member))
    return !values.includes(undefined) && keys.has(values.join('\0'))
  })
}

/**
 * Marks a row as skipped unless it is listed. A rejected row in which a listed member can't be read isn't skipped, because
 * it may be wanted.
 */
export function keepOnly(row: Row, only: OnlyList): Row {
  if (row.skipped !== undefined || isListed(row, only)) return row
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
