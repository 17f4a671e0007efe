// Reads months and years as exporters write them. Nothing is guessed or repaired: a date that a spreadsheet has changed
// (`44563`, `May-26`, `526`) is no expiry. Workers decide whether a card has expired.

/** 1 to 12 from one or two digits, else 0. */
export function readMonth(text: string): number {
  if (text.length > 2) return 0
  const month = readDigits(text)
  return month >= 1 && month <= 12 ? month : 0
}

/** A year from 1900 to 2999 from two (20YY) or four digits, else 0. */
export function readYear(text: string): number {
  const year = readDigits(text)
  if (text.length === 2 && year >= 0) return 2000 + year
  return text.length === 4 && year >= 1900 && year < 3000 ? year : 0
}

/** `year * 100 + month` from MM/YY, MMYY, MM/YYYY or YYYY-MM, else 0. */
export function readExpiry(text: string): number {
  const slash = text.indexOf('/')
  if (slash > 0) return joined(readMonth(text.slice(0, slash)), readYear(text.slice(slash + 1)))
  if (text.length === 4) return joined(readMonth(text.slice(0, 2)), readYear(text.slice(2)))
  if (text.charCodeAt(4) === 45) return joined(readMonth(text.slice(5)), readYear(text.slice(0, 4)))
  return 0
}

function joined(month: number, year: number): number {
  return month > 0 && year > 0 ? year * 100 + month : 0
}

// The number; -1 for an empty text and for anything but ASCII digits.
function readDigits(text: string): number {
  let value = text === '' ? -1 : 0
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    if (digit < 0 || digit > 9) return -1
    value = value * 10 + digit
  }
  return value
}
