// Reads an expiry date in the one form that a profile declares. The profile must say whether four digits are MMYY or
// YYMM, because only the sender knows. A date in another form is no expiry; no other form is tried.
import { readMonth } from '../expiry.ts'

export const EXPIRY_FORMS = [
  ...(['MMYY', 'YYMM', 'MMYYYY', 'YYYYMM'] as const),
  ...(['MM/YY', 'MM-YY', 'YY/MM', 'YY-MM'] as const),
  ...(['MM/YYYY', 'MM-YYYY', 'YYYY/MM', 'YYYY-MM'] as const),
] as const
export type ExpiryForm = (typeof EXPIRY_FORMS)[number]

export interface Expiry {
  month: number
  year: number
}

/**
 * The year: of four digits from 1900 to 2999; of two digits 20xx below `pivot`, 19xx from `pivot` on. 0 for any other
 * text.
 */
export function readDeclaredYear(text: string, pivot = 100): number {
  if (!/^(\d{2}|\d{4})$/.test(text)) return 0
  const year = Number(text)
  if (text.length === 4) return year >= 1900 && year < 3000 ? year : 0
  return year >= pivot ? 1900 + year : 2000 + year
}

/** A function that reads texts of this form; it returns undefined for any other text. */
export function expiryReader(form: ExpiryForm, pivot: number | undefined): (text: string) => Expiry | undefined {
  const yearLength = form.includes('YYYY') ? 4 : 2
  const separator = /[/-]/.exec(form)?.[0]
  const yearFirst = form.startsWith('Y')
  return text => {
    // Next to a separator the month may have one digit; without a separator its position is fixed.
    const at = separator === undefined ? (yearFirst ? yearLength : 2) : text.indexOf(separator)
    if (at < 0 || (separator === undefined && text.length !== yearLength + 2)) return undefined
    const first = text.slice(0, at)
    const second = text.slice(separator === undefined ? at : at + 1)
    const yearText = yearFirst ? first : second
    const month = readMonth(yearFirst ? second : first)
    const year = yearText.length === yearLength ? readDeclaredYear(yearText, pivot) : 0
    return month > 0 && year > 0 ? { month, year } : undefined
  }
}
