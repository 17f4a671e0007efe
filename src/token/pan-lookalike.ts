// Collects many card numbers and says whether a text holds a number that looks like one of them: with the same first
// six digits, last four digits and length. The middle digits aren't compared: otherwise a sender could find a card
// number by trial.
import { couldHoldDigits, digitsOf, endsOf, formsOf, PAN_LENGTH, plainOf } from './pan.ts'
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
    // A number with zeros in front counts with and without them.
    add(number) {
      for (const form of formsOf(number)) {
        if (form.length < PAN_LENGTH.least || form.length > PAN_LENGTH.most) continue
        looks.add(endsKeyOf(form))
        lengths.add(form.length)
      }
    },
    isIn: text =>
      digitRunsOf(text).some(digits =>
        [...lengths].some(length => Array.from(digits).some((_, start) => isLike(digits, start, length))),
      ),
  }
}

/** Whether the text has 12 digits or more between letters. It rules out most texts before `isIn`, which is slower. */
export function couldLookLikeCard(text: string | undefined): text is string {
  return (
    text !== undefined &&
    text.length >= PAN_LENGTH.least &&
    couldHoldDigits(text, PAN_LENGTH.least) &&
    digitRunsOf(text).length > 0
  )
}

function endsKeyOf(number: string): string {
  const { bin, lastFour, length } = endsOf(number)
  return `${bin}${lastFour}${length}`
}

/**
 * The runs of 12 and more digits in a text. Any character but a letter may stand between digits. A UUID isn't a number:
 * with a thousand cards, about one UUID in a million would look like one of them by chance.
 */
function digitRunsOf(text: string): string[] {
  const parts = plainOf(text)
    .replace(UUIDS, 'x')
    .split(/\p{L}+/u)
  return parts.map(digitsOf).filter(digits => digits.length >= PAN_LENGTH.least)
}
