// Collects many card numbers and says whether a text holds one that looks like any of them: the same first six digits,
// last four digits and length. The middle digits aren't compared: an answer that depended on them would let a sender
// find a card number by trying.
import { digitsOf, endsOf, PAN_LENGTH, plainOf } from './pan.ts'
import { UUIDS } from './possible-pan.ts'

export interface PanLookalikes {
  add(number: string): void
  isIn(text: string): boolean
}

export function openPanLookalikes(): PanLookalikes {
  const looks = new Set<string>()
  const lengths = new Set<number>()
  const isLike = (digits: string, start: number, length: number) =>
    start + length <= digits.length && looks.has(endsKeyOf(digits.slice(start, start + length)))
  return {
    add(number) {
      if (number.length < PAN_LENGTH.least || number.length > PAN_LENGTH.most) return
      looks.add(endsKeyOf(number))
      lengths.add(number.length)
    },
    isIn: text =>
      digitRunsOf(text).some(digits =>
        [...lengths].some(length => Array.from(digits).some((_, start) => isLike(digits, start, length))),
      ),
  }
}

/** A quick check that sorts out most texts, since it runs twice for each row of a file. */
export function couldLookLikeCard(text: string | undefined): text is string {
  return text !== undefined && couldHoldDigits(text) && digitRunsOf(text).length > 0
}

/** False for too few digits; a character beyond ASCII may be a digit of another script. */
function couldHoldDigits(text: string): boolean {
  if (text.length < PAN_LENGTH.least) return false
  let digits = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code > 0x7f) return true
    if (code >= 0x30 && code <= 0x39) digits += 1
  }
  return digits >= PAN_LENGTH.least
}

function endsKeyOf(number: string): string {
  const { bin, lastFour, length } = endsOf(number)
  return `${bin}${lastFour}${length}`
}

/**
 * Only a letter ends a number. A UUID counts as no number: with a thousand cards, about one UUID in a million would look
 * like a card by chance.
 */
function digitRunsOf(text: string): string[] {
  const parts = plainOf(text)
    .replace(UUIDS, 'x')
    .split(/\p{L}+/u)
  return parts.map(digitsOf).filter(digits => digits.length >= PAN_LENGTH.least)
}
