// Reads a row as a record that can stand in columns: a card in clear and its reference, and nothing else. An invalid
// row isn't read here: record.ts makes its record and gives the reason.
import { type ColumnRecord, rowOf } from '../../src/job/record-columns.ts'
import { readExpiry, readMonth, readYear } from './expiry.ts'
import { cell, type Layout } from './layout.ts'

// The characters that JSON would escape or isPrintable refuse. A text without them stands in JSON as it is.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
export const UNPLAIN = /["\\\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff]/

/** The row's record as its line of JSON. */
export function jsonOf({ json, columns }: { json: string; columns?: ColumnRecord | undefined }): string {
  return columns ? rowOf(columns) : json
}

const BESIDE = ['encrypted_card', 'sequence_number', 'card_brand', 'token_type', 'token_expiry_date'] as const

/** The record, if it is a create that is nothing but a card in clear, and JSON needs no escapes for its texts. */
export function columnsOf(
  line: number,
  reference: string,
  cells: readonly string[],
  layout: Layout,
): ColumnRecord | undefined {
  if (layout.recordKind !== 'token-create' || layout.sourceTime) return undefined
  const cardNumber = cell(cells, layout, 'card_number')
  const cardholderName = cell(cells, layout, 'cardholder_name')
  if (cardNumber === '' || BESIDE.some(name => cell(cells, layout, name) !== '')) return undefined
  if (!arePlain({ reference, cardNumber, cardholderName })) return undefined
  const expiry = wholeExpiry(cells, layout)
  if (expiry === 0) return undefined
  return {
    line,
    reference,
    cardNumber,
    cardholderName,
    expiryMonth: expiry % 100,
    expiryYear: Math.floor(expiry / 100),
  }
}

/** Whether the texts of a record can stand in columns: JSON needs no escapes for them. */
export function arePlain({
  reference,
  cardNumber,
  cardholderName,
}: Pick<ColumnRecord, 'reference' | 'cardNumber' | 'cardholderName'>): boolean {
  if (cardNumber.length + cardholderName.length > COLUMN_UNITS_MAX) return false
  return !UNPLAIN.test(reference) && !UNPLAIN.test(cardNumber) && !UNPLAIN.test(cardholderName)
}

/** Longer texts would make a record that could be too long for a row. */
const COLUMN_UNITS_MAX = 1_024

/** `year * 100 + month`; 0 if either is missing or can't be read. */
function wholeExpiry(cells: readonly string[], layout: Layout): number {
  const whole = cell(cells, layout, 'expiry')
  const month = cell(cells, layout, 'expiry_month')
  const year = cell(cells, layout, 'expiry_year')
  if (whole !== '') return month === '' && year === '' ? readExpiry(whole) : 0
  const [m, y] = [readMonth(month), readYear(year)]
  return m > 0 && y > 0 ? y * 100 + m : 0
}
