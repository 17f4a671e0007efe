// Masks what could be a card number in a text that a person is shown: every digit of the text becomes `*`, all else stays, so
// that the text can be told from others.
import { digitsOf, holdsPan, PAN_LENGTH, plainOf } from '../../../src/token/pan.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'

/** Digits of other scripts. */
const FOREIGN_DIGIT = /(?![0-9])\p{Nd}/gu
const NUMERAL = /\p{N}/gu

/** `number`: the card number of the text's own row as given, '' for none; the text may hold it with anything between its digits. */
export function masked(text: string, number: string): string {
  if (text.length < PAN_LENGTH.least) return text
  const plain = plainOf(text).replace(FOREIGN_DIGIT, '0')
  return couldLookLikeCard(plain) || holds(plain, digitsOf(number)) ? plainOf(text).replace(NUMERAL, '*') : text
}

function holds(text: string, own: string): boolean {
  return own.length >= PAN_LENGTH.least && holdsPan(text, own)
}
