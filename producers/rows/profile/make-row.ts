// Makes a row from a record, as a profile says: its cells, or the reason why it has none. cells.ts makes the cells.
import { isRefusal, type Reason } from '../../../src/errors.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import { COLUMN_NAMES, type ColumnName } from '../columns.ts'
import { type KeptField, keptText } from '../kept.ts'
import { checkReference, type RowOwner } from '../record.ts'
import { cleaner, expiryOf, filterOf, nameOf, numberOf, othersOf, REPAIRS, type Repair, referenceOf } from './cells.ts'
import { type MakeOnFile, type OnFileText, onFileOf, rowOwnerOf } from './on-file.ts'
import type { Profile } from './profile-schema.ts'
import { ECHO, type FieldUse, type RawRecord, SOURCE_TIME } from './records.ts'
import { changedBySpreadsheet, isOfOwner } from './spreadsheet-cells.ts'

export interface ProfiledRow {
  /** The physical line of the row's first byte, from 1; in nested JSON the line of its element. */
  line: number
  /**
   * Nested JSON: the number of the element in the outer array, from 1; undefined otherwise. Elements may share a line, and
   * only element and item tell all rows apart.
   */
  element: number | undefined
  /**
   * Nested JSON: the number of the card within its element, from 1; undefined otherwise, and if the element has no
   * card.
   */
  item: number | undefined
  /** The cells at the positions of profiledLayout; empty if the row is rejected or skipped. */
  cells: readonly string[]
  rejected: Reason | undefined
  /** The member of the profile because of which the row is rejected, if it is a single one. */
  field?: string | undefined
  /** The reference of a rejected or skipped row, if it may be repeated. */
  reference: string | undefined
  /** The card number as the profile reads it, '' for none: of a rejected or skipped row no cell holds it. */
  number: string
  skipped: 'no_card' | 'filtered' | undefined
  /** Sorted, without repetitions. */
  repairs: readonly Repair[]
  /** The owner of the card, if the profile has `on_file` and the row has an id of its card. */
  onFile: OnFileText | undefined
  /** Undefined unless `owners` is set. */
  owner: RowOwner | undefined
  /** The texts of the kept fields as they stand in the file, long ones cut; undefined if none are kept, or the record can't be read. */
  kept: readonly string[] | undefined
}

/** What a row says about the size of its file, without its cells. */
export interface MeasuredRow {
  skipped: boolean
  /** No text of the row's record is longer than these UTF-16 units and the texts that the profile itself holds. */
  units: number
}

export interface RowMaker {
  uses: readonly FieldUse[]
  make(record: RawRecord): ProfiledRow
  measure(record: RawRecord): MeasuredRow
}

export interface Repeated {
  echo: readonly string[]
  /** Undefined: nothing is kept. */
  keep: readonly KeptField[] | undefined
  /** The field that says when the row's data was given. */
  timeColumn?: string | undefined
  /** Each row says whose card it is, also one that is rejected or skipped. */
  owners?: boolean | undefined
}

export function rowMaker(profile: Profile, { echo, keep, timeColumn, owners = false }: Repeated): RowMaker {
  const uses: FieldUse[] = []
  const use = (field: string, path: string, compared = false) => uses.push({ field, path, compared }) - 1
  const { columns } = profile
  const clean = cleaner(profile)
  const made = {
    clean,
    number: numberOf(profile, use),
    reference: referenceOf(columns.reference, 'columns.reference', use),
    expiry: expiryOf(columns.expiry, use),
    name: nameOf(columns.cardholder_name, use),
    others: othersOf(columns, use),
    passes: filterOf(profile.where ?? [], use),
    onFile: profile.on_file && onFileOf(profile.on_file, use, clean),
    owner: owners && profile.on_file ? rowOwnerOf(profile.on_file, use) : undefined,
    unread: owners && profile.on_file ? ('unknown' as const) : undefined,
    changed: changedBySpreadsheet(profile, uses, clean),
  }
  const timeAt = timeColumn === undefined ? -1 : use(timeColumn, SOURCE_TIME)
  const echoAt = uses.length
  for (const field of echo) use(field, ECHO)
  const keepAt = uses.length
  for (const { field, path } of keep ?? []) use(field, path, true)
  const plan = {
    ...made,
    uses,
    timeAt,
    echoAt,
    keepAt,
    keeps: keep !== undefined,
    skipCardless: profile.no_card === 'skip',
    canSkip: profile.no_card === 'skip' || (profile.where ?? []).length > 0,
    isConverted: profile.format.encoding === 'windows-1252' || profile.format.encoding === 'iso-8859-1',
    blank: new Array<string>(COLUMN_NAMES.length + echo.length).fill(''),
  }
  return { uses, make: record => makeRow(plan, record), measure: record => measureRow(plan, record) }
}

interface Plan {
  clean: ReturnType<typeof cleaner>
  number: ReturnType<typeof numberOf>
  reference: ReturnType<typeof referenceOf>
  expiry: ReturnType<typeof expiryOf>
  name: ReturnType<typeof nameOf>
  others: ReturnType<typeof othersOf>
  passes: ReturnType<typeof filterOf>
  onFile: MakeOnFile | undefined
  owner: ReturnType<typeof rowOwnerOf> | undefined
  /** The owner of a row that can't be read. */
  unread: 'unknown' | undefined
  uses: readonly FieldUse[]
  /** The first member whose text a spreadsheet has changed. */
  changed: ReturnType<typeof changedBySpreadsheet>
  /** The number of the field of the source time; -1 for none. */
  timeAt: number
  /** The number of the first echoed field; the fields before it are the profile's. */
  echoAt: number
  /** The number of the first kept field; those decide nothing. */
  keepAt: number
  keeps: boolean
  skipCardless: boolean
  /** The profile may skip rows. */
  canSkip: boolean
  /** The file has a one-byte encoding: characters beyond ASCII were converted, which counts as a repair. */
  isConverted: boolean
  blank: readonly string[]
}

const NO_CELLS: readonly string[] = []
const NO_REPAIRS: readonly Repair[] = []
const FOREIGN = /[^\0-\x7f]/
const AT = Object.fromEntries(COLUMN_NAMES.map((name, index) => [name, index])) as Record<ColumnName, number>

function makeRow(plan: Plan, record: RawRecord): ProfiledRow {
  const { values } = record
  if (record.rejected !== undefined) return without(record, { rejected: record.rejected, owner: plan.unread })
  const kept = plan.keeps ? values.slice(plan.keepAt).map(value => keptText(value ?? '')) : undefined
  const repairs = new Set<Repair>()
  const texts = textsOf(plan, record, repairs)
  const pan = plan.number(texts, repairs)
  const named = plan.reference(texts)
  const sound = isSound(named, pan) ? named : undefined
  const own = { reference: sound, number: pan, kept, owner: plan.owner?.(texts) }
  const wrong = faultOf(plan, record, { texts, pan, named })
  if (wrong !== undefined) return without(record, wrong, own)
  const changed = plan.changed(texts)
  if (changed !== undefined) {
    const owner = isOfOwner(changed) ? plan.unread : undefined
    return without(record, { rejected: 'field_spreadsheet', field: changed, owner }, own)
  }
  const date = plan.expiry(texts)
  if (date === undefined) return without(record, { rejected: 'expiry_format' }, own)
  const onFile = plan.onFile?.(texts, repairs, pan)
  if (isRefusal(onFile)) return without(record, { rejected: onFile.reason }, own)

  const cells = plan.blank.slice()
  cells[AT.card_number] = pan
  cells[AT.reference] = named ?? ''
  cells[AT.expiry_month] = date.month
  cells[AT.expiry_year] = date.year
  cells[AT.cardholder_name] = plan.name(texts, repairs)
  addOthers(cells, plan, { texts, values })
  if (plan.isConverted && [...cells, onFile?.json ?? ''].some(text => FOREIGN.test(text))) repairs.add('encoding')
  const { line, element, item } = record
  const made = repairs.size === 0 ? NO_REPAIRS : REPAIRS.filter(repair => repairs.has(repair))
  const none = { rejected: undefined, reference: undefined, skipped: undefined }
  return { line, element, item, cells, ...none, number: pan, repairs: made, onFile, owner: own.owner, kept }
}

/** The cleaned texts of the profile's fields and of the source time, by the fields' numbers. */
function textsOf(plan: Plan, { values }: RawRecord, repairs: Set<Repair>): string[] {
  const texts: string[] = []
  for (let index = 0; index < plan.echoAt; index++) {
    texts.push(plan.clean(values[index] ?? '', plan.uses[index]?.compared ? undefined : repairs))
  }
  return texts
}

function measureRow(plan: Plan, record: RawRecord): MeasuredRow {
  let units = 0
  for (let index = 0; index < plan.echoAt; index++) units += record.values[index]?.length ?? 0
  if (record.rejected !== undefined || !plan.canSkip) return { skipped: false, units }
  const repairs = new Set<Repair>()
  const texts = textsOf(plan, record, repairs)
  const fault = faultOf(plan, record, { texts, pan: plan.number(texts, repairs), named: '' })
  return { skipped: fault?.skipped !== undefined, units }
}

/** Adds the cells of the profile's further columns, of the echoed fields and of the source time. */
function addOthers(
  cells: string[],
  plan: Plan,
  { texts, values }: Pick<RawRecord, 'values'> & { texts: readonly string[] },
): void {
  for (const { column, text } of plan.others) cells[AT[column]] = text(texts)
  for (let index = plan.echoAt; index < plan.keepAt; index++) {
    cells[COLUMN_NAMES.length + index - plan.echoAt] = values[index] ?? ''
  }
  if (plan.timeAt >= 0) cells.push(texts[plan.timeAt] ?? '')
}

/** Whether results may repeat the reference of a row without cells. If the row has no number, its card isn't known. */
function isSound(reference: string | undefined, pan: string): boolean {
  if (reference === undefined || reference === '' || checkReference(reference, pan) !== undefined) return false
  return pan !== '' || !couldLookLikeCard(reference)
}

interface Without {
  rejected?: Reason
  field?: string
  skipped?: 'no_card' | 'filtered'
  /** Where the row's own fields don't say it. */
  owner?: RowOwner | undefined
}

function faultOf(
  plan: Plan,
  { values, childless }: RawRecord,
  { texts, pan, named }: { texts: readonly string[]; pan: string; named: string | undefined },
): Without | undefined {
  if (!childless && !plan.passes(texts)) return { skipped: 'filtered' }
  const wrong = values.indexOf(undefined)
  if (wrong >= 0 && wrong < plan.keepAt) return { rejected: 'field_type', owner: plan.unread }
  if (pan === '') return plan.skipCardless ? { skipped: 'no_card' } : { rejected: 'field_required' }
  return named === undefined ? { rejected: 'field_required' } : undefined
}

function without(
  { line, element, item }: RawRecord,
  { rejected, field, skipped, owner }: Without,
  own: Pick<ProfiledRow, 'reference' | 'number' | 'kept' | 'owner'> = NOTHING_OWN,
): ProfiledRow {
  const nothing = { cells: NO_CELLS, repairs: NO_REPAIRS, onFile: undefined }
  const row: ProfiledRow = { line, element, item, rejected, skipped, ...nothing, ...own, owner: owner ?? own.owner }
  if (field !== undefined) row.field = field
  return row
}
const NOTHING_OWN = { reference: undefined, number: '', kept: undefined, owner: undefined }
