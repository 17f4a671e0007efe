// Made-up card numbers of published test BINs, with a right check digit. None was ever issued.

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

/** Odd and not a multiple of five, so that account numbers repeat only after all numbers of their length. */
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
