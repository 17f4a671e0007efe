// The common form in which the readers of all formats return records: the texts of the fields that a profile reads, in
// the order of the profile's fields.
import type { Reason } from '../../../src/errors.ts'

/** The path of a field that the results repeat. */
export const ECHO = '--echo'

/** The path of the field that says when a row's data was given. */
export const SOURCE_TIME = '--source-time'

/** A field that the profile reads, or that other files repeat. */
export interface FieldUse {
  field: string
  /** The member of the profile that names the field, for messages; `--echo` or `--rejects` for a field that these repeat. */
  path: string
  /** The field is only compared, so true and false count as texts. */
  compared: boolean
}

export interface RawRecord {
  line: number
  /** In nested JSON the number of the element in the outer array, from 1. */
  element: number | undefined
  /** In nested JSON the number of the record within its element, from 1. */
  item: number | undefined
  /** One text per FieldUse; undefined for a value that isn't a text. Empty if the record can't be read. */
  values: readonly (string | undefined)[]
  /** Why the record can't be read. */
  rejected: Reason | undefined
  /** The element has no records; `values` holds the values of its parents. */
  childless: boolean
}

/** Separates the texts of an array; no text holds it. */
export const LIST_SEPARATOR = '\0'

export const NO_VALUES: readonly string[] = []

export function unreadable(line: number, rejected: Reason): RawRecord {
  return { line, element: undefined, item: undefined, values: NO_VALUES, rejected, childless: false }
}
