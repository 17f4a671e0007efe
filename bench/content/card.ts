// The card of a row of a mix, and what a row draws. A row depends on its index alone, so every run and every checkout gets the
// same bytes, and a file may have some rows of another.
import { drawer } from '../../bin/sample/cards.ts'
import { panOf } from '../../bin/sample/pan.ts'

const SEED = 20_261_129
const START = 1_234_567
/** Cards of this many indexes further on are in no file as they are. */
const OTHERS = 5_000_000
const YEAR_FIRST = 2027
const YEARS = 6

export interface Card {
  index: number
  pan: string
  brand: string
  /** M, without a zero in front. */
  month: string
  year: string
  draw: Draw
}

/** What a row draws, in its order. */
export interface Draw {
  /** From 0 to below `count`. */
  below(count: number): number
  from<T>(list: readonly T[]): T
  /** `length` characters of an alphabet. */
  text(alphabet: string, length: number): string
  digits(length: number): string
  /** UUID version 4. */
  uuid(): string
}

const DIGITS = '0123456789'
const HEX = '0123456789abcdef'
const BRANDS = [
  ['37', 'AMEX'],
  ['35', 'JCB'],
  ['6', 'DISCOVER'],
  ['5', 'MASTERCARD'],
  ['2', 'MASTERCARD'],
  ['4', 'VISA'],
] as const

export function cardAt(index: number): Card {
  const draw = drawOf(index)
  const pan = panOf(index, START)
  return {
    index,
    pan,
    brand: BRANDS.find(([prefix]) => pan.startsWith(prefix))?.[1] ?? '',
    month: String(1 + draw.below(12)),
    year: String(YEAR_FIRST + draw.below(YEARS)),
    draw,
  }
}

/** A card that no row has. */
export function otherPanOf(index: number): string {
  return panOf(index + OTHERS, START)
}

function drawOf(index: number): Draw {
  const next = drawer(SEED + index)
  const below = (count: number) => Math.floor(next() * count)
  const text = (alphabet: string, length: number) => {
    let made = ''
    while (made.length < length) made += alphabet[below(alphabet.length)]
    return made
  }
  return {
    below,
    from: list => list[below(list.length)] as (typeof list)[number],
    text,
    digits: length => text(DIGITS, length),
    uuid: () => `${text(HEX, 8)}-${text(HEX, 4)}-4${text(HEX, 3)}-${text('89ab', 1)}${text(HEX, 3)}-${text(HEX, 12)}`,
  }
}

/** A serial number as shops count their customers. */
export function serialOf(index: number): string {
  return String(index + 1).padStart(7, '0')
}
