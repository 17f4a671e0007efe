// How many digits Unicode's normal form NFKC makes of a character. 302 characters beyond ASCII become digits, 122 of them
// several (⑫ becomes 12). A digit is never composed with what stands beside it, so the digits of a text are those of its
// characters.

/** First and last code point, and how many digits each of them becomes. Unicode 17; a test compares it with Node's own data. */
const RANGES: readonly (readonly [number, number, number])[] = [
  [0xb2, 0xb3, 1],
  [0xb9, 0xb9, 1],
  [0xbc, 0xbe, 2],
  [0x2070, 0x2070, 1],
  [0x2074, 0x2079, 1],
  [0x2080, 0x2089, 1],
  [0x2150, 0x2151, 2],
  [0x2152, 0x2152, 3],
  [0x2153, 0x215e, 2],
  [0x215f, 0x215f, 1],
  [0x2189, 0x2189, 2],
  [0x2460, 0x2468, 1],
  [0x2469, 0x2473, 2],
  [0x2474, 0x247c, 1],
  [0x247d, 0x2487, 2],
  [0x2488, 0x2490, 1],
  [0x2491, 0x249b, 2],
  [0x24ea, 0x24ea, 1],
  [0x3251, 0x325f, 2],
  [0x32b1, 0x32bf, 2],
  [0x32c0, 0x32c8, 1],
  [0x32c9, 0x32cb, 2],
  [0x3358, 0x3361, 1],
  [0x3362, 0x3370, 2],
  [0x3378, 0x3379, 1],
  [0x339f, 0x33a6, 1],
  [0x33a8, 0x33a8, 1],
  [0x33af, 0x33af, 1],
  [0x33e0, 0x33e8, 1],
  [0x33e9, 0x33fe, 2],
  [0xff10, 0xff19, 1],
  [0x1ccf0, 0x1ccf9, 1],
  [0x1d7ce, 0x1d7ff, 1],
  [0x1f100, 0x1f10a, 1],
  [0x1fbf0, 0x1fbf9, 1],
]

/** By code unit of the basic plane; 0 for surrogates. */
const BASIC = new Uint8Array(0x10000)
const ASTRAL = RANGES.filter(([first]) => first > 0xffff)
for (const [first, last, digits] of RANGES) if (last <= 0xffff) BASIC.fill(digits, first, last + 1)
BASIC.fill(1, 0x30, 0x3a)

const SURROGATE = { first: 0xd800, last: 0xdbff }

/** The number of digits in the text's normal form, without making that form; it stops counting at `enough`. */
export function countDigits(text: string, enough = Number.POSITIVE_INFINITY): number {
  let digits = 0
  for (let index = 0; index < text.length && digits < enough; index += 1) {
    const unit = text.charCodeAt(index)
    const isAstral = unit >= SURROGATE.first && unit <= SURROGATE.last
    digits += isAstral ? digitsOfAstral(text.codePointAt(index) ?? 0) : (BASIC[unit] ?? 0)
  }
  return digits
}

function digitsOfAstral(code: number): number {
  return ASTRAL.find(([first, last]) => code >= first && code <= last)?.[2] ?? 0
}
