// The rules of a profile that its schema can't express: members that exclude or need each other, and fields that must
// not be read. No data file is read here.
import { COLUMNS, type ColumnName } from '../columns.ts'
import { isSecurityCode } from '../security-code.ts'
import { isZone, needsZone } from '../time-form.ts'
import { parseTemplate } from './field.ts'
import type { FileFormat, Fixed } from './format.ts'
import { onFileOf } from './on-file.ts'
import type { Profile } from './profile-schema.ts'
import { checkReturn, isOfReturn, returnFieldsOf } from './return-shape.ts'

export interface ProfileFault {
  wrong: string
  next: string
}

/** Each field that the profile reads, with the path of the member that names it. */
export function fieldsOf(profile: Profile): { path: string; field: string }[] {
  const { columns, where = [] } = profile
  const { expiry, cardholder_name: holder } = columns
  const found = [{ path: 'columns.card_number.from', field: columns.card_number.from }]
  for (const { field } of parseTemplate(columns.reference ?? '').parts) found.push({ path: 'columns.reference', field })
  if ('from' in expiry) found.push({ path: 'columns.expiry.from', field: expiry.from })
  else {
    found.push({ path: 'columns.expiry.month', field: expiry.month })
    found.push({ path: 'columns.expiry.year', field: expiry.year })
  }
  for (const [index, field] of (holder?.from ?? []).entries()) {
    found.push({ path: `columns.cardholder_name.from.${index}`, field })
  }
  for (const name of ['sequence_number', 'card_brand', 'token_type', 'token_expiry_date'] as const) {
    const value = columns[name]
    if (value !== undefined && 'from' in value) found.push({ path: `columns.${name}.from`, field: value.from })
  }
  for (const [index, { field }] of where.entries()) found.push({ path: `where.${index}.field`, field })
  const { on_file: onFile } = profile
  if (onFile) {
    onFileOf(
      onFile,
      (field, path) => found.push({ path, field }),
      text => text,
    )
  }
  return found
}

/** Whether the field at this path is card data: `columns.expiry.month` belongs to the column expiry, which is. */
export function isCardData(path: string): boolean {
  if (path.startsWith('on_file.cardholder_name.')) return true
  const [group, column = ''] = path.split('.')
  return group === 'columns' && Object.hasOwn(COLUMNS, column) && COLUMNS[column as ColumnName].card
}

/** The first fault of the profile; undefined if it has none. */
export function checkProfile(profile: Profile): ProfileFault | undefined {
  return (
    checkFields(profile) ??
    checkFilters(profile) ??
    checkOnFile(profile) ??
    checkSourceTime(profile) ??
    checkFormat(profile.format) ??
    checkReturn(profile.return)
  )
}

function checkFields(profile: Profile): ProfileFault | undefined {
  const fields = [...fieldsOf(profile), ...returnFieldsOf(profile.return)]
  const code = fields.find(({ field }) => isSecurityCode(field))
  if (code) {
    return { wrong: `${code.path} names a security code`, next: 'Leave it out: such a code is never read or kept.' }
  }
  const dropped = fields.find(({ field }) => profile.drop?.includes(field))
  if (dropped) return { wrong: `${dropped.path} names a field that drop names`, next: 'Take it out of one of them.' }
  const read = new Set(fields.map(({ field }) => field))
  const unread = Object.keys(profile.as_is ?? {}).find(field => !read.has(field))
  if (unread !== undefined)
    return { wrong: 'as_is names a field that the profile does not read', next: 'Name it as the columns name it.' }
  const parent = profile.format.type !== 'json' && fields.find(({ field }) => field.startsWith('^.'))
  if (parent)
    return {
      wrong: `${parent.path} begins with ^., but only records of the format json have a parent`,
      next: 'Name a field of the record.',
    }
  const card = new Set(fields.flatMap(({ path, field }) => (isCardData(path) ? [field] : [])))
  const back = fields.find(({ path, field }) => isOfReturn(path) && card.has(field))
  if (back) {
    const next = 'Leave it out: of a card the file that goes back tells what the results tell.'
    return { wrong: `${back.path} names card data`, next }
  }
  const { parts } = parseTemplate(profile.columns.reference ?? '')
  if (parts.some(({ field, last4 }) => !last4 && field === profile.columns.card_number.from)) {
    const next = 'Write :last4 behind it: {number:last4}.'
    return { wrong: 'columns.reference would put the card number into the results', next }
  }
  return undefined
}

function checkFilters({ where = [] }: Profile): ProfileFault | undefined {
  const bad = where.findIndex(({ is, is_not }) => (is === undefined) === (is_not === undefined))
  return bad < 0 ? undefined : { wrong: `where.${bad} must have either is or is_not`, next: 'Give one of them.' }
}

const OTHER_ON_FILE = /^on_file\.(?!card_id$|customer_id$)/

function checkOnFile(profile: Profile): ProfileFault | undefined {
  const { columns, on_file: onFile } = profile
  if (onFile === undefined) return undefined
  if ((onFile.first_amount === undefined) !== (onFile.first_currency === undefined))
    return { wrong: 'on_file has only one of first_amount and first_currency', next: 'Give both or neither.' }
  const number = columns.card_number.from
  const ids = [onFile.card_id, onFile.customer_id ?? ''].flatMap(template => parseTemplate(template).parts)
  if (ids.some(({ field, last4 }) => !last4 && field === number))
    return { wrong: 'on_file makes an id of the card number', next: 'Write :last4 behind it: {number:last4}.' }
  const reads = fieldsOf(profile).find(({ path, field }) => field === number && OTHER_ON_FILE.test(path))
  return reads && { wrong: `${reads.path} names the field of the card number`, next: 'Leave it out.' }
}

function checkSourceTime({ source_time: time }: Profile): ProfileFault | undefined {
  if (!time) return undefined
  if (time.zone !== undefined && !isZone(time.zone))
    return { wrong: 'source_time.zone is no zone', next: 'Write UTC, an offset +02:00, or a name Europe/Paris.' }
  if (needsZone(time.form) === (time.zone !== undefined)) return undefined
  return time.zone === undefined
    ? { wrong: 'source_time has no zone', next: 'Say which zone its times are of, such as UTC or Europe/Paris.' }
    : { wrong: 'source_time has a zone, but its form says the moment itself', next: 'Leave the zone out.' }
}

function checkFormat(format: FileFormat): ProfileFault | undefined {
  if (format.type === 'delimited' && format.names !== undefined && format.header !== 'none') {
    return { wrong: 'format.names stands beside a header', next: 'Set format.header to none, or leave names out.' }
  }
  if (format.type !== 'fixed') return undefined
  const outside = format.columns.findIndex(({ start, length }) => start + length - 1 > format.length)
  if (outside >= 0) {
    return { wrong: `format.columns.${outside} ends behind format.length`, next: 'Correct its place, or the length.' }
  }
  const overlap = overlapOf(format)
  if (overlap) return overlap
  for (const name of ['header_record', 'trailer_record'] as const) {
    const record = format[name]
    if ((record?.count_start === undefined) !== (record?.count_length === undefined)) {
      return { wrong: `format.${name} has only one of count_start and count_length`, next: 'Give both or neither.' }
    }
  }
  return undefined
}

/** Overlapping columns are refused: through the shared part, one column would read what another keeps back. */
function overlapOf({ columns }: Fixed): ProfileFault | undefined {
  const ordered = columns.map((column, index) => ({ ...column, index })).sort((a, b) => a.start - b.start)
  for (const [at, { start, index }] of ordered.entries()) {
    const before = ordered[at - 1]
    if (before === undefined || before.start + before.length <= start) continue
    const wrong = `format.columns.${index} overlaps format.columns.${before.index}`
    return { wrong, next: 'Give each character to one column at most.' }
  }
  return undefined
}
