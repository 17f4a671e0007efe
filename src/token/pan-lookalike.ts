// Collects many card numbers and says whether a text holds a number that looks like one of them: with the same first
// six digits, last four digits and length. The middle digits aren't compared: otherwise a sender could find a card
// number by trial.
import { digitsOf, formsOf, hasDigits, PAN_LENGTH, plainOf } from './pan.ts'
import { UUIDS } from './possible-pan.ts'

export interface PanLookalikes {
  add(number: string): void
  isIn(text: string): boolean
}

export function openPanLookalikes(): PanLookalikes {
  const looks = new Set<number>()
  const lengths: number[] = []
  const isInRun = (digits: string) => {
    for (const length of lengths)
      for (let start = 0; start + length <= digits.length; start += 1)
        if (looks.has(lookAt(digits, start, length))) return true
    return false
  }
  return {
    // A number with zeros in front counts with and without them.
    add(number) {
      for (const form of formsOf(number)) {
        if (form.length < PAN_LENGTH.least || form.length > PAN_LENGTH.most) continue
        looks.add(lookAt(form, 0, form.length))
        if (!lengths.includes(form.length)) lengths.push(form.length)
      }
    },
    isIn: text => digitRunsOf(text).some(isInRun),
  }
}

/** Whether the text has 12 digits or more between letters. It rules out most texts before `isIn`, which is slower. */
export function couldLookLikeCard(text: string | undefined): text is string {
  return text !== undefined && hasDigits(text, PAN_LENGTH.least) && digitRunsOf(text).length > 0
}

const LENGTHS = PAN_LENGTH.most + 1

/** The first six digits, the last four and the length of the number at this place, as one number. */
function lookAt(digits: string, start: number, length: number): number {
  let look = 0
  for (let index = start; index < start + 6; index += 1) look = look * 10 + digits.charCodeAt(index) - ZERO
  for (let index = start + length - 4; index < start + length; index += 1)
    look = look * 10 + digits.charCodeAt(index) - ZERO
  return look * LENGTHS + length
}
const ZERO = 48

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
