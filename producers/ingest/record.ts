// Turns one row of a file into a ledger line, or into the reason why it can't be one. Only the form of the file is
// checked here (units, times with an offset), and that no whole card number is sent where an id or a masked number
// belongs; the worker checks everything else.
import type { Reason } from '../../src/errors.ts'
import { isPrintable } from '../../src/job/envelope/text.ts'
import type { TransactionLine } from '../../src/job/ledger/columns.ts'
import type { Gathering } from '../../src/job/ledger/gather.ts'
import { checkMinor, minorOf } from '../../src/token/amount.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { Layout } from './columns.ts'

/** A row that isn't sent. */
export interface RefusedRow {
  line: number
  /** The id that the file gives the row; '' if it can't be read or could hold a card number. */
  uid: string
  reason: Reason
  field: string | undefined
}

export type Row = TransactionLine | RefusedRow

/** Takes the rows of a file in their order. */
export interface RowTaker {
  row(row: Row): void
  /**
   * Makes room for one line more of so many bytes (an upper bound of the line as JSON). Returns the lines to which its
   * values are added; undefined if lines are only counted.
   */
  room(bytes: number): Gathering | undefined
}

export function rowOf(line: number, cells: readonly string[], layout: Layout): Row {
  const transaction: Record<string, unknown> = {}
  for (const { name, at } of layout.plain) {
    const cell = cells[at]
    if (cell === undefined || cell === '') continue
    if ((name === 'masked_card' || name === 'transaction_uid') && holdsPossiblePan(cell))
      return { line, uid: soundId(cells[layout.uidAt]), reason: 'field_format', field: name }
    transaction[name] = name === 'created_at' || name === 'settled_at' ? momentOf(cell) : cell
  }
  for (const column of layout.amounts) {
    const cell = cells[column.at] ?? ''
    if (cell === '') continue
    const read = amountOf(cell, column, cells[layout.currencyAt] ?? '')
    if ('reason' in read) return { line, uid: soundId(cells[layout.uidAt]), ...read }
    transaction[column.name] = read.minor
  }
  transaction['fee'] ??= '0'
  transaction['commission'] ??= '0'
  return { line, transaction }
}

/** The id that a row gives; '' if it can't be read, or could hold a card number. */
export function soundId(cell = ''): string {
  return isPrintable(cell) && !cell.includes('\ufffd') && !holdsPossiblePan(cell) ? cell : ''
}

function amountOf(
  cell: string,
  { name, minor }: Layout['amounts'][number],
  currency: string,
): { minor: string } | { reason: Reason; field: string } {
  const read = minor ? checkMinor(cell) : minorOf(cell, currency)
  if (!('reason' in read)) return read
  if (read.reason === 'currency_unknown') return { ...read, field: 'currency' }
  return { ...read, field: minor ? `${name}_minor` : name }
}

const DAY = /^\d{4}-\d\d-\d\d$/
const ZONED = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/**
 * A time in UTC: an offset is applied, and a date alone means the beginning of its day. Any other text stays as it is;
 * the worker refuses it.
 */
export function momentOf(text: string): string {
  if (text.length >= 20 && text.endsWith('Z') && text[10] === 'T') return text
  if (DAY.test(text)) return `${text}T00:00:00Z`
  const [, day, time, fraction = '', sign, hours = '0', minutes = '0'] = ZONED.exec(text) ?? []
  const ms = Date.parse(`${day}T${time}Z`)
  if (Number.isNaN(ms) || Number(hours) > 23 || Number(minutes) > 59) return text
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000)
  const moved = new Date(ms - offset).toISOString()
  return moved.length === 24 ? `${moved.slice(0, 19)}${fraction}Z` : text
}
