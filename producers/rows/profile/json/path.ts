// Finds the values of a JSON record by the paths of a profile. If a member's name is the whole path (`card.number`, as
// in flattened files), that member is used; else the path is followed.
import { FileError } from '../../file-error.ts'
import { shown } from '../../layout.ts'
import { textOf } from '../../ndjson.ts'
import { type FieldUse, LIST_SEPARATOR } from '../records.ts'
import { isOfReturn } from '../return-shape.ts'

type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A record and the objects around it, nearest first; undefined for one that is missing. */
export type Lineage = readonly (JsonObject | undefined)[]

export interface Lookups {
  /**
   * The text of each field: '' if there is no such member, undefined if its value is neither a text nor an exact
   * number. The texts of an array are joined where the profile may name several.
   */
  find(lineage: Lineage): (string | undefined)[]
  /**
   * Call it once, at the end of the file. Throws a FileError if no record has a member at the path of the card number,
   * the reference, the expiry, or a field that the file repeats that goes back to the provider: JSON has no header, so
   * a misspelt path shows only then. Other paths may match nothing.
   */
  end(): void
}

export function lookupsOf(uses: readonly FieldUse[]): Lookups {
  const lookups = uses.map(lookupOf)
  const unmet = new Set<number>()
  for (const [index, { path }] of uses.entries()) if (NEEDED.has(path) || isOfReturn(path)) unmet.add(index)
  let records = 0
  const find = (lineage: Lineage) => {
    const values = lookups.map(lookup => lookup(lineage))
    if (lineage[0] !== undefined) records += 1
    for (const index of unmet) if (values[index] !== undefined) unmet.delete(index)
    return uses.map((use, index) => textIn(values[index], use))
  }
  const end = () => {
    if (records === 0 || unmet.size === 0) return
    const list = uses.flatMap(({ field, path }, index) => (unmet.has(index) ? [`${shown(field)} (${path})`] : []))
    throw new FileError('usage', `No record of the file has ${list.join(', ')}.`, 'Correct the paths of the profile.')
  }
  return { find, end }
}

const NEEDED: ReadonlySet<string> = new Set([
  'columns.card_number.from',
  'columns.reference',
  'on_file.card_id',
  ...['columns.expiry.from', 'columns.expiry.month', 'columns.expiry.year'],
])

/** Members whose field may be an array. */
const LISTS: ReadonlySet<string> = new Set(['on_file.network_transaction_ids.from'])

function textIn(value: unknown, { compared, path }: FieldUse): string | undefined {
  if (value === undefined) return ''
  if (LISTS.has(path)) return listIn(value)
  return compared && typeof value === 'boolean' ? String(value) : textOf(value)
}

function listIn(value: unknown): string | undefined {
  const texts = Array.isArray(value) ? value.map(textOf) : [textOf(value)]
  return texts.every(text => text !== undefined && !text.includes(LIST_SEPARATOR))
    ? texts.join(LIST_SEPARATOR)
    : undefined
}

function lookupOf({ field }: FieldUse): (lineage: Lineage) => unknown {
  let up = 0
  let name = field
  for (; name.startsWith('^.'); name = name.slice(2)) up += 1
  const path = name.split('.')
  return lineage => {
    const object = lineage[up]
    if (object === undefined) return undefined
    if (Object.hasOwn(object, name)) return object[name]
    return path.length === 1 ? undefined : walk(object, path)
  }
}

/**
 * The value at a path. Undefined if a member is absent; an object (which no field accepts) if the path leads through
 * something that isn't an object.
 */
export function walk(object: JsonObject, path: readonly string[]): unknown {
  let value: unknown = object
  for (const name of path) {
    if (value === null || value === undefined) return undefined
    if (!isObject(value)) return {}
    value = Object.hasOwn(value, name) ? value[name] : undefined
  }
  return value
}
