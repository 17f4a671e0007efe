// The rows that were rejected or failed, as CSV for a person who corrects the export: why, and the row's own texts without
// card data. A row that couldn't be split has its place and the reason alone.
import { cellOf } from '../../../src/csv-text.ts'
import { shownBin } from '../../../src/token/brand.ts'
import { digitsOf, passesLuhn, withoutPadding } from '../../../src/token/pan.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import type { KeptField } from '../kept.ts'
import { isWholeNumber, type Row } from '../record.ts'
import { masked } from './mask.ts'
import type { FileRow } from './result-row.ts'

export interface RejectColumns {
  /** The file was read by a profile: which card of its element a row is. */
  profile: boolean
  /** The file's own columns, the first of those that a row keeps. */
  fields: readonly KeptField[]
}

const COLUMNS = ['outcome', 'reason', 'field', 'reference', 'bin', 'last_four'] as const

export function headerOfRejects({ profile, fields }: RejectColumns): string {
  const place = profile ? ['line', 'item'] : ['line']
  return `${[...place, ...COLUMNS, ...fields.map(({ field }) => cellOf(field))].join(',')}\n`
}

/** `rows`: the ends of the rows `given`, in the same order. */
export function textOfRejects(rows: readonly FileRow[], given: readonly Row[], columns: RejectColumns): string {
  let text = ''
  for (const [index, row] of rows.entries()) {
    const own = given[index]
    if (own && (row.outcome === 'REJECTED' || row.outcome === 'FAILED')) text += lineOf(row, own, columns)
  }
  return text
}

function lineOf(row: FileRow, { kept, number }: Row, { profile, fields }: RejectColumns): string {
  const { line, fileLine = line, item = '', outcome, reason = '' } = row
  const field = 'field' in row ? (row.field ?? '') : ''
  const split = kept !== undefined || !isUnsplit(reason)
  const cells = [
    outcome,
    reason,
    field,
    split ? referenceOf(row.reference, number) : '',
    ...endsOf(number),
    ...fields.map((_, index) => masked(kept?.[index] ?? '', number)),
  ]
  const place = profile ? `${fileLine},${item}` : `${fileLine}`
  return `${place},${cells.map(cell => (cell === '' ? '' : cellOf(cell))).join(',')}\n`
}

function isUnsplit(reason: string): boolean {
  return reason.startsWith('row_') || reason === 'element_too_large'
}

/**
 * As results show it. Empty if the row's number isn't a card number and the reference could be one: the columns may be
 * shifted.
 */
function referenceOf(reference: string | undefined, number: string): string {
  if (reference === undefined) return ''
  return isWholeNumber(number) || !couldLookLikeCard(reference) ? reference : ''
}

/** Six digits of the BIN, which any scope may show, and the last four. */
function endsOf(number: string): [bin: string, lastFour: string] {
  if (!isWholeNumber(number)) return ['', '']
  const digits = withoutPadding(digitsOf(number))
  return couldEndInCode(digits) ? ['', ''] : [shownBin(digits, 6), digits.slice(-4)]
}

/** A card number of 14 digits and a security code of three. An expiry has four, as the longer codes have. */
const WITH_CODE_LEAST = 17

function couldEndInCode(digits: string): boolean {
  if (digits.length < WITH_CODE_LEAST) return false
  return !passesLuhn(digits) || passesLuhn(digits.slice(0, -3)) || passesLuhn(digits.slice(0, -4))
}
