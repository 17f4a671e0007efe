// Finds the values of a JSON record by the paths of a profile. A member whose name is the whole path (`card.number`, as
// in flattened files) comes before a path of that form.
import { textOf } from '../../ndjson.ts'
import type { FieldUse } from '../records.ts'

type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A record and the objects around it, the nearest first; undefined for one that isn't there. */
export type Lineage = readonly (JsonObject | undefined)[]

/** '' where there is no such member, undefined where its value is no text and no exact whole number. */
export type Lookup = (lineage: Lineage) => string | undefined

export function lookupOf({ field, compared }: FieldUse): Lookup {
  let up = 0
  let name = field
  for (; name.startsWith('^.'); name = name.slice(2)) up += 1
  const path = name.split('.')
  return lineage => {
    const object = lineage[up]
    if (object === undefined) return ''
    const value = Object.hasOwn(object, name) ? object[name] : walk(object, path)
    if (value === undefined) return ''
    return compared && typeof value === 'boolean' ? String(value) : textOf(value)
  }
}

/** Undefined where a member is absent; an object where the path would lead through something else. */
export function walk(object: JsonObject, path: readonly string[]): unknown {
  let value: unknown = object
  for (const name of path) {
    if (value === null || value === undefined) return undefined
    if (!isObject(value)) return {}
    value = Object.hasOwn(value, name) ? value[name] : undefined
  }
  return value
}
