// Does a text that will stand in the results hold a card number? Asked of references and echoed values, of each row
// about its own card. Whether a card number is a good one is the worker's question, not this one.

/**
 * `pan` is the row's card_number as given, '' if it has none. Digits are compared whatever stands between them. Where
 * the row's own number is none (columns gone astray), a text that looks like any card number counts.
 */
export function holdsPan(text: string, pan: string): boolean {
  if (text.length < 12) return false
  const held = digitsOf(text)
  if (held.length < 12 || pan === '') return false
  const own = digitsOf(pan)
  if (own.length >= 12 && own.length <= 19) return held.includes(own)
  return held.length <= 19 && passesLuhn(held)
}

const FOREIGN = /[^\0-\x7f]/

function digitsOf(text: string): string {
  // Full-width and other digits count as what they look like.
  return (FOREIGN.test(text) ? text.normalize('NFKC') : text).replace(/\D+/g, '')
}

export function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 48
    const double = digit * 2
    sum += index % 2 === 0 ? digit : double > 9 ? double - 9 : double
  }
  return sum % 10 === 0
}
