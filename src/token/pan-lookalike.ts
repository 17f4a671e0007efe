// Many cards at once, and whether a text looks like one of them. Of each are known its first six digits, its last four and
// its length, and no more: an answer that told one number from others of the same look would let a sender search for it.
import { digitsOf, PAN_LENGTH, plainOf, shownOf } from './pan.ts'
import { UUIDS } from './possible-pan.ts'

export interface Likenesses {
  add(number: string): void
  isIn(text: string): boolean
}

export function openLikenesses(): Likenesses {
  const looks = new Set<string>()
  const lengths = new Set<number>()
  const isLike = (digits: string, start: number, length: number) =>
    start + length <= digits.length && looks.has(lookOf(digits.slice(start, start + length)))
  return {
    add(number) {
      if (number.length < PAN_LENGTH.least || number.length > PAN_LENGTH.most) return
      looks.add(lookOf(number))
      lengths.add(number.length)
    },
    isIn: text =>
      digitRunsOf(text).some(digits =>
        [...lengths].some(length => Array.from(digits).some((_, start) => isLike(digits, start, length))),
      ),
  }
}

/** Most texts can't, and are found out at once: it is asked of each row of a file, twice. */
export function couldLookLikeCard(text: string | undefined): text is string {
  return text !== undefined && couldHoldDigits(text) && digitRunsOf(text).length > 0
}

/** False for too few digits; a character beyond ASCII may stand for one. */
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

function lookOf(number: string): string {
  const { bin, lastFour, length } = shownOf(number)
  return `${bin}${lastFour}${length}`
}

/**
 * A letter ends a number, and nothing else does. A UUID is none: among a thousand cards, one in some million would look
 * like one of them.
 */
function digitRunsOf(text: string): string[] {
  const parts = plainOf(text)
    .replace(UUIDS, 'x')
    .split(/\p{L}+/u)
  return parts.map(digitsOf).filter(digits => digits.length >= PAN_LENGTH.least)
}
