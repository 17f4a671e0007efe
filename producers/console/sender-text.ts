// Texts that senders chose, in the form in which a page shows them. Digits that could be a card number are never shown,
// whoever wrote them.
import { digitsOf, passesLuhn } from '../../src/token/pan.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'

const NUMBER = /^\d(?:[ -]?\d){11,18}$/

/** Whether the whole text is a number of 12 to 19 digits that passes Luhn. */
export function isNumberLikeCard(text: string): boolean {
  return NUMBER.test(text) && passesLuhn(digitsOf(text))
}

/** As an argument of a command that a page shows: the name of the value, where the value isn't shown. */
export function shownWord(text: string, name: string): string {
  return shown(text) === text ? text : name
}

/** The text, with asterisks for its digits if these could be a card number. */
export function shown(text: string): string {
  return isNumberLikeCard(text) || holdsPossiblePan(text) ? text.replace(/\d/g, '*') : text
}
