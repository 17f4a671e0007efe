// The pieces that `on_file` of a record is made of: members of a JSON object, written as text, and the checks that every
// text of them passes.
import { isRefusal, type Reason, type Refusal, refuse } from '../../../../src/errors.ts'
import { holdsPan } from '../../../../src/token/pan.ts'
import { quoted } from '../../record.ts'
import type { Repair } from '../cells.ts'

/** A row of the file as a part of it is made. */
export interface Given {
  /** The fields by the numbers that `use` gave them. */
  texts: readonly string[]
  repairs: Set<Repair>
  /** The digits of the row's card number, '' where it can be none. */
  number: string
}

/** `"name":value`, or several of them; '' for none. */
export type Part = (row: Given) => string | Refusal

export const at = (path: string) => `on_file.${path}`

/** The members of all parts, or the first refusal. */
export function joined(parts: readonly Part[], row: Given): string | Refusal {
  let members = ''
  for (const part of parts) {
    const made = part(row)
    if (isRefusal(made)) return made
    if (made !== '') members = members === '' ? made : `${members},${made}`
  }
  return members
}

/** `most`: in UTF-16 units. */
export function textPart(name: string, most: number, textOf: (row: Given) => string): Part {
  return row => {
    const text = textOf(row)
    if (text === '') return ''
    const value = textValue(text, most, row)
    return typeof value === 'string' ? `"${name}":${value}` : refuse(value.reason, at(name))
  }
}

/** A text in JSON. None may hold the card number of its row; workers compare it with the others of its chunk. */
export function textValue(text: string, most: number, { number }: Given): string | { reason: Reason } {
  if (text.length > most) return { reason: 'field_length' }
  if (number !== '' && holdsPan(text, number)) return { reason: 'reference_pan' }
  return quoted(text) ?? { reason: 'field_characters' }
}
