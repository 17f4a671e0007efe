// The cards of the bare loop, as of commit 55c0cab: their numbers, the brand of a number, and what of it may be shown. The
// numbers are of published test BINs; none of the cards was ever issued.
import creditCardType from 'credit-card-type'

const BINS = [
  ['411111', 16],
  ['555555', 16],
  ['401288', 16],
  ['510510', 16],
  ['378282', 15],
  ['601111', 16],
  ['222300', 16],
  ['353011', 16],
  ['371449', 15],
] as const
const STRIDE = 7_919_333

/** The card number of an index; different indexes below ten million give different numbers. */
export function panOf(index: number, start: number): string {
  const [bin, length] = BINS[index % BINS.length] as (typeof BINS)[number]
  const digits = length - bin.length - 1
  const account = (start + index * STRIDE) % 10 ** digits
  const body = bin + String(account).padStart(digits, '0')
  return body + checkDigit(body)
}

function checkDigit(body: string): number {
  let sum = 0
  for (let index = body.length - 1, double = true; index >= 0; index--, double = !double) {
    const digit = (body.charCodeAt(index) - 48) * (double ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return (10 - (sum % 10)) % 10
}

const BRANDS = ['AMEX', 'DINERS', 'DISCOVER', 'JCB', 'MAESTRO', 'MASTERCARD', 'VISA', 'UPI']
/** Their names in credit-card-type. */
const TYPES = ['american-express', 'diners-club', 'discover', 'jcb', 'maestro', 'mastercard', 'visa', 'unionpay']
const UPI_ALSO = [62, 81]
const DIGITS = 6
/** For each first six digits the place of the brand in BRANDS, from 1. */
const BY_PREFIX = readPrefixes()

function readPrefixes(): Uint8Array {
  const ranges = TYPES.flatMap((type, index) => {
    const patterns = [...creditCardType.getTypeInfo(type).patterns, ...(type === 'unionpay' ? UPI_ALSO : [])]
    return patterns.map(pattern => {
      const [first = 0, last = first] = Array.isArray(pattern) ? pattern : [pattern]
      return { place: index + 1, first, last, digits: String(first).length }
    })
  })
  const prefixes = new Uint8Array(10 ** DIGITS)
  // Of two ranges that hold a number, the one with the longer prefix is right: it is written last.
  for (const { place, first, last, digits } of ranges.sort((a, b) => a.digits - b.digits)) {
    const width = 10 ** (DIGITS - digits)
    prefixes.fill(place, first * width, (last + 1) * width)
  }
  return prefixes
}

export function detectBrand(pan: string): string | undefined {
  let prefix = 0
  for (let index = 0; index < DIGITS; index++) prefix = prefix * 10 + pan.charCodeAt(index) - 48
  const place = BY_PREFIX[prefix]
  return place ? BRANDS[place - 1] : undefined
}

/** The first eight digits of a number with 16 digits, the first six of any other. */
export function shownBin(pan: string): string {
  return pan.slice(0, pan.length === 16 ? 8 : 6)
}
