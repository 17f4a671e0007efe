// The brand of a card number, the lengths that a brand issues, and how many digits may be shown. CB has no range of its
// own: the caller or the BIN data say whether a card is CB.
import creditCardType from 'credit-card-type'
import { type Refusal, refuse } from '../errors.ts'

export const BRANDS = ['AMEX', 'CB', 'DINERS', 'DISCOVER', 'JCB', 'MAESTRO', 'MASTERCARD', 'VISA', 'UPI'] as const
export type Brand = (typeof BRANDS)[number]

interface Scheme {
  /** The brand's name in the package credit-card-type. */
  type: string
  /** Prefixes that the package lacks. */
  patterns?: readonly number[]
  /** Lengths that the package lacks. */
  lengths?: readonly number[]
}

const SCHEMES = {
  AMEX: { type: 'american-express' },
  CB: undefined,
  DINERS: { type: 'diners-club', lengths: [15, 17, 18] },
  DISCOVER: { type: 'discover', lengths: [17, 18] },
  JCB: { type: 'jcb', lengths: [15] },
  MAESTRO: { type: 'maestro' },
  MASTERCARD: { type: 'mastercard' },
  VISA: { type: 'visa', lengths: [13] },
  // The package's ranges for UnionPay have gaps.
  UPI: { type: 'unionpay', patterns: [62, 81] },
} as const satisfies Record<Brand, Scheme | undefined>

// One byte for each possible first six digits, because no pattern of these brands is longer. The byte is the brand's
// place in BRANDS, counted from 1.
const DIGITS = 6
const BY_PREFIX = new Uint8Array(10 ** DIGITS)
const LENGTHS = new Map<Brand, ReadonlySet<number>>()

interface Range {
  place: number
  first: number
  last: number
  digits: number
}

function readSchemes(): void {
  const ranges: Range[] = []
  for (const [index, brand] of BRANDS.entries()) {
    const scheme: Scheme | undefined = SCHEMES[brand]
    if (!scheme) continue
    const { patterns, lengths } = creditCardType.getTypeInfo(scheme.type)
    LENGTHS.set(brand, new Set([...lengths, ...(scheme.lengths ?? [])]))
    for (const pattern of [...patterns, ...(scheme.patterns ?? [])]) {
      const [first = 0, last = first] = Array.isArray(pattern) ? pattern : [pattern]
      ranges.push({ place: index + 1, first, last, digits: String(first).length })
    }
  }
  // If two ranges overlap, the longer prefix is right, so it is written last.
  for (const { place, first, last, digits } of ranges.sort((a, b) => a.digits - b.digits)) {
    const width = 10 ** (DIGITS - digits)
    BY_PREFIX.fill(place, first * width, (last + 1) * width)
  }
}
readSchemes()

/**
 * The brand that the number's digits show; never CB. A domestic scheme within an international range counts as the
 * international brand. Undefined for any other number.
 */
export function detectBrand(pan: string): Brand | undefined {
  let prefix = 0
  for (let index = 0; index < DIGITS; index++) prefix = prefix * 10 + pan.charCodeAt(index) - 48
  const place = BY_PREFIX[prefix]
  return place ? BRANDS[place - 1] : undefined
}

/** Whether this brand issues numbers of this length; true for an unknown brand. */
export function isPossibleLength(pan: string, brand: Brand | undefined): boolean {
  const lengths = brand && LENGTHS.get(brand)
  return lengths === undefined || lengths.has(pan.length)
}

const CB_RIDES_ON: ReadonlySet<string | undefined> = new Set(['VISA', 'MASTERCARD', 'MAESTRO', undefined])

/**
 * The effective brand: the stated brand, or the detected one if none is stated. Refuses a stated brand that is unknown
 * or that contradicts the detected one. A local scheme contradicts none, and CB none of the brands that its cards also
 * have.
 */
export function checkBrand(
  cardBrand: string | undefined,
  detected: string | undefined,
  localSchemes: readonly string[],
): string | undefined | Refusal {
  if (cardBrand === undefined || cardBrand === detected) return detected
  if (localSchemes.includes(cardBrand)) return cardBrand
  if (!isBrand(cardBrand)) return refuse('field_value', 'body.card_brand')
  const allowed = cardBrand === 'CB' ? CB_RIDES_ON.has(detected) : detected === undefined
  return allowed ? cardBrand : refuse('brand_conflict', 'body.card_brand')
}

export function isBrand(name: string): name is Brand {
  return (BRANDS as readonly string[]).includes(name)
}

/**
 * The digits of a card number that may be shown beside the last four: at most eight of a 16-digit number, six of any
 * other (PCI DSS 3.4.1).
 */
export function shownBin(pan: string, binDigits: 6 | 8): string {
  return pan.slice(0, binDigits === 8 && pan.length === 16 ? 8 : 6)
}
