// The pieces that `on_file` of a record is made of: members of a JSON object, written as text, and the checks that every
// text of them passes.
import { isRefusal, type Reason, type Refusal, refuse } from '../../../../src/errors.ts'
import { couldHoldDigits, holdsPan, PAN_LENGTH } from '../../../../src/token/pan.ts'
import { couldLookLikeCard } from '../../../../src/token/pan-lookalike.ts'
import { holdsPossiblePan } from '../../../../src/token/possible-pan.ts'
import { quoted } from '../../record.ts'
import type { Repair } from '../cells.ts'

/** A row of the file as a part of it is made. */
export interface Given {
  /** The fields by the numbers that `use` gave them. */
  texts: readonly string[]
  repairs: Set<Repair>
  /** The digits of the row's card number; '' if the text can't be a card number. */
  number: string
  /** The texts so far that could be a card number. */
  cardLike: string[]
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

/** A text that is no id of a provider's or a network's may hold no possible card number. `most`: in UTF-16 units. */
export function textPart(name: string, most: number, textOf: (row: Given) => string): Part {
  return row => textMember(name, most, textOf(row), row)
}

export function textMember(name: string, most: number, text: string, row: Given): string | Refusal {
  return holdsPossiblePan(text) ? refuse('reference_pan', at(name)) : idMember(name, most, text, row)
}

/** An id may be a long number. `most`: in UTF-16 units. */
export function idPart(name: string, most: number, textOf: (row: Given) => string): Part {
  return row => idMember(name, most, textOf(row), row)
}

export function idMember(name: string, most: number, text: string, row: Given): string | Refusal {
  if (text === '') return ''
  const value = textValue(text, most, row)
  return typeof value === 'string' ? `"${name}":${value}` : refuse(value.reason, at(name))
}

/** A text in JSON. None may hold the card number of its row; it is compared with the others of its chunk later. */
export function textValue(text: string, most: number, { number, cardLike }: Given): string | { reason: Reason } {
  if (text.length > most) return { reason: 'field_length' }
  // Most texts have too few digits for a card number.
  if (couldHoldDigits(text, PAN_LENGTH.least)) {
    if (number !== '' && holdsPan(text, number)) return { reason: 'reference_pan' }
    if (couldLookLikeCard(text)) cardLike.push(text)
  }
  return quoted(text) ?? { reason: 'field_characters' }
}
