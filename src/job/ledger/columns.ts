// The lines of a chunk of transactions in columns: the form of a request whose `columns` hold most lines as arrays, one
// for each field, and whose `transactions` hold the others. Lines as objects are longer, because each repeats the names
// of its members and the values that all lines of a file have in common. A repeated chunk is recognised by the digest
// of its text. The command always makes the same text of the same lines (gather.ts). Another sender may put any line into
// `transactions`, but must do so in the same way when it repeats the chunk. Workers check the lines; this file refuses
// only a value that hasn't this form.
import { inOrder } from '../record-columns.ts'
import { TRANSACTION_FIELDS, type TransactionField } from './transaction.ts'

/** A transaction and its line number in the source. The transaction isn't checked yet. */
export interface TransactionLine {
  line: number
  transaction: Record<string, unknown>
}

/** The fields whose columns are arrays. */
export type TextField = Exclude<TransactionField, 'transaction_uid'>
export const TEXT_FIELDS = TRANSACTION_FIELDS.filter((name): name is TextField => name !== 'transaction_uid')

/**
 * Values at the same place belong to the same line. A column of texts has one value if its values are all the same. '' is
 * no value.
 */
export interface TransactionColumns extends Readonly<Record<TextField, readonly string[]>> {
  /** The line numbers in the source. */
  line: readonly number[]
  /** The 32 hexadecimal digits of each uid, in lower case, one after the other. */
  transaction_uid: string
  /** The places in the chunk, from 0, of the lines in `transactions`; they grow. */
  others: readonly number[]
}

export const LINE_MAX = 2_147_483_647
/**
 * The longest text of a column, in UTF-16 units. One text may stand for all lines of a chunk and be checked for each of
 * them, so it must be short.
 */
const TEXT_UNITS_MAX = 255
const NAMES: readonly string[] = ['line', ...TRANSACTION_FIELDS, 'others']
export const UID_DIGITS = 32
const HEX = /^[0-9a-f]*$/
/** A UUID in lower case. */
export const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const TEXT_SCHEMA = { type: 'string', maxLength: TEXT_UNITS_MAX }

/** The columns as a schema. A test holds the text of the example and its digest against it. */
export const COLUMNS_SCHEMA = {
  description:
    'Most lines of the chunk, as arrays of their values: canonical JSON without blanks, its members in this order. A column of texts has one value if its values are all the same; an empty text is no value, and no text is longer than 255 UTF-16 units. `others` are the places in the chunk, from 0, of the lines in `transactions`. Send it only while `features` of the list of live keys names `ledger_columns`.',
  type: 'object',
  properties: {
    line: { type: 'array', items: { type: 'integer', minimum: 1, maximum: LINE_MAX } },
    ...Object.fromEntries(TRANSACTION_FIELDS.map(name => [name, { type: 'array', items: TEXT_SCHEMA }])),
    transaction_uid: { type: 'string', pattern: '^([0-9a-f]{32})*$' },
    others: { type: 'array', items: { type: 'integer', minimum: 0 } },
  },
  required: [...NAMES],
  additionalProperties: false,
  examples: [
    {
      line: [2, 5],
      transaction_uid: 'a5bb10eb6bdc45828faeb67d6545b23e0899cd856fba4b138050135138cd87c5',
      entity_uid: ['7d9f1c52-3f0e-4a7b-9c1d-2b8e6f4a5d30'],
      merchant_reference: ['order-0', 'order-1'],
      type: ['SALE', 'REFUND'],
      brand: ['VISA', 'MASTERCARD'],
      masked_card: ['411111******1111'],
      token_reference: ['t01ARZ3NDEKTSV4RRFFQ69G5FAV'],
      currency: ['EUR', 'JPY'],
      amount: ['1', '-104730'],
      fee: ['0', '31'],
      commission: ['0', '17'],
      created_at: ['2026-01-01T00:00:00Z', '2026-01-01T02:11:59Z'],
      settled_at: ['2026-01-02T06:00:00Z'],
      clearing_date: ['', '2026-01-02'],
      clearing_merchant: ['M-1234567'],
      bank_account: ['DE89370400440532013000'],
      clearing_reference: ['CLR-2026-01-02'],
      settlement_batch: ['B-2026-01-02'],
      others: [1],
    },
  ],
}

/** Whether a value is a text that a column can hold. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= TEXT_UNITS_MAX
}

/** Whether a value has the form of columns. Of their texts only the length is checked. */
export function isColumns(value: unknown): value is TransactionColumns {
  if (typeof value !== 'object' || value === null) return false
  const names = Object.keys(value)
  if (names.length !== NAMES.length || !names.every((name, index) => name === NAMES[index])) return false
  const { line, transaction_uid: uids, others, ...texts } = value as { [name: string]: unknown }
  if (!Array.isArray(line) || !line.every(isLineNumber)) return false
  if (typeof uids !== 'string' || uids.length !== line.length * UID_DIGITS || !HEX.test(uids)) return false
  return Object.values(texts).every(column => isColumn(column, line.length)) && isPlaces(others)
}

export function isLineNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= LINE_MAX
}

/**
 * Refuses several values that are all the same: they must be sent as one value, so that the same lines have one text.
 */
function isColumn(column: unknown, count: number): boolean {
  if (!Array.isArray(column) || !column.every(isText)) return false
  if (column.length === 1) return count >= 1
  return column.length === count && (count === 0 || column.some(value => value !== column[0]))
}

function isPlaces(others: unknown): boolean {
  if (!Array.isArray(others)) return false
  return others.every((place, index) => Number.isInteger(place) && place > (index === 0 ? -1 : others[index - 1]))
}

/** Whether `others` gives each of the lines beside the columns a place within the chunk. */
export function belong({ line, others }: TransactionColumns, transactions: readonly unknown[]): boolean {
  return others.length === transactions.length && (others.at(-1) ?? -1) < line.length + others.length
}

/** Whether the line numbers of a chunk grow. */
export function grow(columns: TransactionColumns, transactions: readonly TransactionLine[]): boolean {
  let last = 0
  for (const item of inOrder({ columns })) {
    const line = 'other' in item ? transactions[item.other]?.line : columns.line[item.at]
    if (line === undefined || line <= last) return false
    last = line
  }
  return true
}

/** The value at a place of a column of texts. */
export function valueAt(column: readonly string[], at: number): string {
  return (column.length === 1 ? column[0] : column[at]) ?? ''
}

/** The lines of a chunk in their order. */
export function spread(columns: TransactionColumns, transactions: readonly TransactionLine[]): TransactionLine[] {
  const lines: TransactionLine[] = []
  for (const item of inOrder({ columns })) {
    const line = 'other' in item ? transactions[item.other] : lineAt(columns, item.at)
    if (line) lines.push(line)
  }
  return lines
}

/** The line at a place of columns. */
export function lineAt(columns: TransactionColumns, at: number): TransactionLine {
  const transaction: Record<string, unknown> = { transaction_uid: uidAt(columns, at) }
  for (const name of TEXT_FIELDS) {
    const value = valueAt(columns[name], at)
    if (value !== '') transaction[name] = value
  }
  return { line: columns.line[at] ?? 0, transaction }
}

function uidAt({ transaction_uid: uids }: TransactionColumns, at: number): string {
  const hex = uids.slice(at * UID_DIGITS, (at + 1) * UID_DIGITS)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The columns without the lines at these places, and without `others`. */
export function without(columns: TransactionColumns, places: ReadonlySet<number>): TransactionColumns {
  if (places.size === 0) return columns
  const { line, transaction_uid: uids } = columns
  const kept = line.map((_, at) => at).filter(at => !places.has(at))
  const keep = (column: readonly string[]) =>
    column.length === line.length ? kept.map(at => column[at] ?? '') : kept.length === 0 ? [] : column
  const texts = Object.fromEntries(TEXT_FIELDS.map(name => [name, keep(columns[name])]))
  return {
    line: kept.map(at => line[at] ?? 0),
    transaction_uid: kept.map(at => uids.slice(at * UID_DIGITS, (at + 1) * UID_DIGITS)).join(''),
    ...(texts as Record<TextField, readonly string[]>),
    others: [],
  }
}
