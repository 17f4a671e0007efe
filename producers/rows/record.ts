// Turns the cells of one row into the record that travels in the block, written straight as its line of JSON (a record
// is built for every row of a file: to build an object and stringify it would cost twice as much). Only errors in
// reading the file are found here; the worker checks the card.
import { type Reason, type Refusal, refuse } from '../../src/errors.ts'
import { isPrintable } from '../../src/job/envelope/text.ts'
import type { ColumnRecord } from '../../src/job/record-columns.ts'
import { CHUNK } from '../../src/job/token-batch.ts'
import type { OwnerId } from '../../src/token/on-file.ts'
import { digitsOf, PAN_LENGTH, panFault, passesLuhn, withoutPadding } from '../../src/token/pan.ts'
import { couldLookLikeCard } from '../../src/token/pan-lookalike.ts'
import { columnsOf, UNPLAIN } from './column-record.ts'
import type { ColumnName } from './columns.ts'
import { readExpiry, readMonth, readYear } from './expiry.ts'
import type { OnFileTrait, SkipReason } from './file-outcome.ts'
import { cell, type Layout } from './layout.ts'
import { formulaForm, spreadsheetForm } from './spreadsheet-form.ts'

/** `none`: the row has no id of its card. `unknown`: the row can't be read, or only a part of an id is there. */
export type RowOwner = Omit<OwnerId, 'tokenScope'> | 'none' | 'unknown'

export interface Row {
  /**
   * The physical line at which the row starts, from 1. In nested JSON rows may share a line: there it is the row's
   * number, from 1. Within a batch it identifies the row, and workers order rows by it.
   */
  line: number
  /** Undefined if the row has no reference, or one that must not be repeated. */
  reference: string | undefined
  /**
   * `{"line":…,"reference":…,"request":{…}}` or `{"line":…,"reference":…,"rejected":{"reason":…,"field":…}}`, one line; '' for a row
   * with `columns`, whose line `jsonOf` makes.
   */
  json: string
  /** The record, if it can stand in columns and was read for them. */
  columns?: ColumnRecord | undefined
  rejected: Reason | undefined
  /** The column, or the member of the profile, because of which the row is rejected, if it is a single one. */
  field?: string | undefined
  /** The row's card number as given, '' for none. */
  number: string
  /** The echoed values in the order of `--echo`; absent without `--echo`, or if they must not be repeated. */
  echo: readonly string[] | undefined
  /** In nested JSON: the physical line at which the row's element starts. */
  fileLine?: number | undefined
  /** In nested JSON: the number of the element, and of the card within it: `17.2`. */
  item?: string | undefined
  /** The ids that travel with the card, if the row says whose card it is. */
  onFile?: readonly OnFileTrait[] | undefined
  /** Whose card it is; undefined unless `owners` is set. */
  owner?: RowOwner | undefined
  /** The texts about the owner that could be a card number. */
  cardLike?: readonly string[] | undefined
  /** The repairs that the profile made in this row, by name. */
  repairs?: readonly string[] | undefined
  /** The texts of the kept fields as they stand in the file, long ones cut; absent if none are kept, or the row can't be read. */
  kept?: readonly string[] | undefined
  /** Why the row isn't sent; undefined if it is sent. The `json` of a skipped row is empty. */
  skipped?: SkipReason | undefined
}

const REFERENCE_LENGTH_MAX = 128

export function rejectRow(
  line: number,
  reason: Reason,
  reference?: string | undefined,
  echo?: readonly string[] | undefined,
  number = '',
  field?: string | undefined,
): Row {
  const named = reference === undefined ? '' : `,"reference":${JSON.stringify(reference)}`
  const where = field === undefined ? '' : `,"field":"${field}"`
  const json = `{"line":${line}${named},"rejected":{"reason":"${reason}"${where}}}`
  const row: Row = { line, reference, json, rejected: reason, number, echo }
  if (field !== undefined) row.field = field
  return row
}

/**
 * A row that can't be read as a whole. Its reference, if its cell can be read, appears only in the results. The
 * row's card isn't known, so no text that could be a card number is repeated.
 */
export function rejectUnread(line: number, reason: Reason, cells: readonly string[], layout: Layout): Row {
  const reference = cell(cells, layout, 'reference')
  const isSound =
    reference !== '' &&
    !reference.includes(REPLACEMENT) &&
    checkReference(reference, '') === undefined &&
    !couldLookLikeCard(reference)
  return { ...rejectRow(line, reason), reference: isSound ? reference : undefined }
}

/** Replaces bytes that aren't UTF-8. */
const REPLACEMENT = '\ufffd'

export function skipRow(line: number, skipped: SkipReason, reference?: string | undefined): Row {
  return { line, reference, json: '', rejected: undefined, number: '', echo: undefined, skipped }
}

/**
 * Makes a row. Cells are texts; '' for a cell that the row doesn't have. `onFile`: the JSON object of `on_file`, '' for
 * none.
 */
export function buildRow(line: number, cells: readonly string[], layout: Layout, onFile = ''): Row {
  const pan = cell(cells, layout, 'card_number')
  const reference = cell(cells, layout, 'reference')
  const spoilt = checkReference(reference, pan)
  const echo = layout.echo.length === 0 ? undefined : layout.echo.map(index => cells[index] ?? '')
  const leak = echo?.some(value => holdsOwnNumber(value, pan)) ? 'echo_pan' : undefined
  const repeated = spoilt === undefined && reference !== '' ? reference : undefined
  const echoed = leak === undefined ? echo : undefined
  const refused = spoilt ?? leak ?? (echo?.every(isEchoable) === false ? 'field_characters' : undefined)
  if (refused !== undefined) {
    return rejectRow(line, refused, repeated, refused === 'field_characters' ? undefined : echoed, pan)
  }
  const changed = layout.isProfiled ? undefined : changedBySpreadsheet(cells, layout)
  if (changed !== undefined) return rejectRow(line, 'field_spreadsheet', repeated, echoed, pan, changed)
  const columns = layout.inColumns && onFile === '' ? columnsOf(line, repeated ?? '', cells, layout) : undefined
  if (columns) return { line, reference: repeated, json: '', columns, rejected: undefined, number: pan, echo: echoed }
  const built = BUILDERS[layout.recordKind](cells, layout)
  const time = timeOf(cells, layout)
  const request = join(onFile === '' ? built : join(built, `"on_file":${onFile}`), time)
  if (typeof request !== 'string') return rejectRow(line, request.reason, repeated, echoed, pan)
  const named = repeated === undefined ? '' : `,"reference":${quote(repeated)}`
  const json = `{"line":${line}${named},"request":{${request}}}`
  // Counting the bytes also makes one flat text of the pieces. Until then V8 keeps them all, seven times as much memory,
  // and it would join them more slowly when the chunk is sent.
  if (Buffer.byteLength(json) > CHUNK.lineBytesMax) {
    return rejectRow(line, 'row_too_long', repeated, echoed, pan)
  }
  return { line, reference: repeated, json, rejected: undefined, number: pan, echo: echoed }
}

/** A file without a profile can't say that such a form is right. Workers judge the other columns. */
function changedBySpreadsheet(cells: readonly string[], layout: Layout): ColumnName | undefined {
  if (spreadsheetForm(cell(cells, layout, 'reference')) !== undefined) return 'reference'
  return formulaForm(cell(cells, layout, 'cardholder_name')) === undefined ? undefined : 'cardholder_name'
}

/** The member for the time at which the row's data was given. */
function timeOf(cells: readonly string[], { sourceTime }: Layout): Request {
  if (!sourceTime) return ''
  const ms = sourceTime.read(cells[sourceTime.at] ?? '')
  const isMoment = ms !== undefined && ms >= 0 && ms <= MOMENT_MAX
  return isMoment ? `"source_time":"${new Date(ms).toISOString()}"` : refuse('source_time_invalid', 'source_time')
}

/** The end of the year 9999. */
const MOMENT_MAX = 253_402_300_799_999

export function checkReference(reference: string, pan: string): Reason | undefined {
  if (reference === '') return undefined
  if (holdsOwnNumber(reference, pan)) return 'reference_pan'
  if (reference.length > REFERENCE_LENGTH_MAX) return 'field_length'
  return UNPLAIN.test(reference) && !isPrintable(reference) ? 'field_characters' : undefined
}

// Line breaks and tabs are allowed, because the writer of the results quotes them and free texts often have them.
function isEchoable(value: string): boolean {
  return !UNPLAIN.test(value) || isPrintable(value.replace(/[\t\r\n]/g, ' '))
}

function quote(text: string): string {
  return UNPLAIN.test(text) ? JSON.stringify(text) : `"${text}"`
}

/** A text in JSON; undefined for a text that no field accepts. */
export function quoted(text: string): string | undefined {
  return UNPLAIN.test(text) && !isPrintable(text) ? undefined : quote(text)
}

/** The members of a JSON object without its braces ('' for none), or why there can be no record. */
type Request = string | Refusal
type Builder = (cells: readonly string[], layout: Layout) => Request

const BUILDERS: Record<Layout['recordKind'], Builder> = {
  'token-create': (cells, layout) =>
    join(cardOf(cells, layout), rest(cells, layout, ['card_brand', 'token_type', 'token_expiry_date'])),
  'token-update': (cells, layout) => {
    const own = rest(cells, layout, ['id', 'token_expiry_date', 'scheme_token_action'])
    const email = field(cells, layout, 'cardholder_email', 'card_holder_email')
    return join(join(own, email), updateOf(cells, layout))
  },
  'token-lifecycle': (cells, layout) => rest(cells, layout, ['id', 'action']),
  'scheme-token': (cells, layout) => rest(cells, layout, ['id', 'action']),
  reference: (cells, layout) =>
    rest(cells, layout, ['provider', 'provider_account', 'customer_id', 'card_id', 'action', 'on_orphan']),
}

function join(one: Request, other: Request): Request {
  if (typeof one !== 'string') return one
  if (typeof other !== 'string') return other
  return one === '' || other === '' ? one + other : `${one},${other}`
}

function rest(cells: readonly string[], layout: Layout, names: readonly ColumnName[]): Request {
  let members = ''
  for (const name of names) {
    if (layout.at[name] < 0) continue
    const member = field(cells, layout, name, name)
    if (typeof member !== 'string') return member
    if (member !== '') members = members === '' ? member : `${members},${member}`
  }
  return members
}

function field(cells: readonly string[], layout: Layout, name: ColumnName, key: string): Request {
  const value = cell(cells, layout, name)
  if (value === '') return ''
  if (!UNPLAIN.test(value)) return `"${key}":"${value}"`
  // The armor of an encrypted card has line breaks; the worker's schema checks it.
  if (name !== 'encrypted_card' && !isPrintable(value)) return refuse('field_characters', name)
  return `"${key}":${JSON.stringify(value)}`
}

/** The member for the card: a card in clear as `card`, an encrypted card as it is. */
function cardOf(cells: readonly string[], layout: Layout): Request {
  if (cell(cells, layout, 'card_number') === '') return rest(cells, layout, ['encrypted_card', 'public_key_alias'])
  if (cell(cells, layout, 'encrypted_card') !== '') return refuse('field_conflict', 'encrypted_card')
  const number = field(cells, layout, 'card_number', 'cardNumber')
  const name = field(cells, layout, 'cardholder_name', 'cardholderName')
  const sequence = field(cells, layout, 'sequence_number', 'sequenceNumber')
  const dated = join(number, expiryOf(cells, layout, 'expiryMonth', 'expiryYear'))
  const card = join(join(dated, name), sequence)
  return typeof card !== 'string' ? card : `"card":{${card}}`
}

/** The members of an update: a new card if the row has one, else changed fields of the stored card. */
function updateOf(cells: readonly string[], layout: Layout): Request {
  if (cell(cells, layout, 'card_number') !== '') return cardOf(cells, layout)
  const card = rest(cells, layout, ['encrypted_card', 'public_key_alias'])
  const name = field(cells, layout, 'cardholder_name', 'card_holder_name')
  return join(join(card, name), expiryOf(cells, layout, 'expiry_month', 'expiry_year'))
}

function expiryOf(cells: readonly string[], layout: Layout, monthKey: string, yearKey: string): Request {
  const whole = cell(cells, layout, 'expiry')
  const month = cell(cells, layout, 'expiry_month')
  const year = cell(cells, layout, 'expiry_year')
  if (whole !== '') {
    if (month !== '' || year !== '') return refuse('field_conflict', 'expiry')
    const expiry = readExpiry(whole)
    if (expiry === 0) return refuse('expiry_format', 'expiry')
    return `"${monthKey}":${expiry % 100},"${yearKey}":${Math.floor(expiry / 100)}`
  }
  let members = ''
  if (month !== '') {
    const value = readMonth(month)
    if (value === 0) return refuse('expiry_format', 'expiry_month')
    members = `"${monthKey}":${value}`
  }
  if (year !== '') {
    const value = readYear(year)
    if (value === 0) return refuse('expiry_format', 'expiry_year')
    members += `${members === '' ? '' : ','}"${yearKey}":${value}`
  }
  return members
}

/**
 * Whether a text that will be in the results, or in another file, holds a card number. `pan`: the row's card_number as
 * given, '' if it has none. Digits are compared whatever is between them. If the row's own number isn't a card number
 * (shifted columns), any text that looks like a card number counts.
 */
export function holdsOwnNumber(text: string, pan: string): boolean {
  if (text.length < 12) return false
  const held = digitsOf(text)
  if (held.length < 12 || pan === '') return false
  const own = withoutPadding(digitsOf(pan))
  if (own.length >= 12 && own.length <= 19) return held.includes(own)
  return held.length <= 19 && passesLuhn(held)
}

/** A longer text of digits may be a card number with other digits behind it. */
const USUAL_LENGTH_MAX = 16

/**
 * Whether a row's card_number is a whole card number and nothing else. If it isn't, columns may be shifted, and nobody
 * knows the row's card. A long one must have the form of a card number: a security code or an expiry could end it.
 */
export function isWholeNumber(number: string): boolean {
  if (!/^[\d -]+$/.test(number)) return false
  const digits = withoutPadding(digitsOf(number))
  return digits.length > USUAL_LENGTH_MAX ? panFault(digits) === undefined : digits.length >= PAN_LENGTH.least
}
