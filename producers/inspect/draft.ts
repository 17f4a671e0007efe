// Drafts a profile from what was found in a file. A person must read and correct it. What can't be found out is left
// out and listed.
import { shown } from '../rows/layout.ts'
import { FIELD } from '../rows/profile/field.ts'
import { type Profile, parseProfile } from '../rows/profile/profile.ts'
import { type ColumnGuess, type Meaning, settledForm } from './column-guess.ts'
import type { FileForm } from './form.ts'

export interface Draft {
  /** Undefined if something that a profile needs can't be found out. */
  profile: Profile | undefined
  /** In place of it: the same with place-holders for the columns that a person must name. No file has columns of such names. */
  sketch?: Profile
  /** What a person must decide, in sentences. */
  open: string[]
}

/** Drafts the profile of a file of delimited text or NDJSON from its columns. */
export function draftProfile(form: FileForm, columns: readonly ColumnGuess[]): Draft {
  const open: string[] = []
  const named = (meaning: Meaning) => columns.find(column => column.meaning === meaning)
  const number = named('card_number')
  if (number === undefined) open.push('No column looks like card numbers: say which one holds them.')
  const expiry = expiryOf(named, open)
  const reference = referenceOf(form, columns, open)
  if (number === undefined || expiry === undefined)
    return { profile: undefined, sketch: sketchOf(form, { number, expiry, reference }), open }
  const holder = named('cardholder_name')
  const names = holder ? [holder] : [named('first_name'), named('last_name')].flatMap(one => one ?? [])
  const unnameable = whyUnnameable(
    [reference?.name, number.name, ...expiry.reads, ...names.map(({ name }) => name)],
    columns,
  )
  if (unnameable.length > 0) return { profile: undefined, open: [...open, ...unnameable] }
  const others = columns.filter(column => column.meaning === 'card_number' && column !== number)
  if (others.length > 0) {
    const list = others.map(({ name }) => shown(name)).join(', ')
    open.push(`Several columns look like card numbers: the draft reads ${shown(number.name)}, and passes over ${list}.`)
  }
  const onFile = onFileOf(columns)
  if (onFile) open.push(...onFile.check)
  const draft = {
    profile: 1,
    name: 'draft',
    title: 'Draft by tokenmill inspect: compare it with the file',
    ...(onFile ? { add: onFile.check } : {}),
    format: formatOf(form),
    columns: {
      ...(reference ? { reference: `{${reference.name}}` } : {}),
      card_number: { from: number.name, ...((number.separated ?? 0) > 0 ? { remove: ' -' } : {}) },
      expiry: expiry.columns,
      ...(names.length > 0 ? { cardholder_name: { from: names.map(({ name }) => name) } } : {}),
    },
    ...(onFile ? { on_file: onFile.columns } : {}),
  }
  return { profile: parseProfile('draft', JSON.stringify(draft)), open }
}

const PLACE_HOLDER = 'FILL IN'

/** The form of an expiry that isn't settled is never guessed, so its column isn't named either. */
function sketchOf(form: FileForm, { number, expiry, reference }: Found): Profile {
  const sketch = {
    profile: 1,
    name: 'draft',
    title: 'Draft by tokenmill inspect: fill in what is missing',
    format: formatOf(form),
    columns: {
      ...(reference && isUsual(reference.name) ? { reference: `{${reference.name}}` } : {}),
      card_number: {
        from: number && isUsual(number.name) ? number.name : `${PLACE_HOLDER}: column of the card number`,
      },
      expiry: (expiry?.reads.every(isUsual) ? expiry.columns : undefined) ?? {
        from: `${PLACE_HOLDER}: column of the expiry, and its form`,
        form: 'MM/YY',
      },
    },
  }
  return parseProfile('draft', JSON.stringify(sketch))
}

interface Found {
  number: ColumnGuess | undefined
  expiry: ReturnType<typeof expiryOf>
  reference: ColumnGuess | undefined
}

/** What names a row: the id of a card, else the first column that is filled and different in all rows. */
function referenceOf({ rows }: FileForm, columns: readonly ColumnGuess[], open: string[]): ColumnGuess | undefined {
  const card = columns.find(({ meaning }) => meaning === 'card_id')
  if (card) return card
  const other = columns.find(
    column => column.unique && column.filled === rows.length && isNameable(column.name, columns),
  )
  open.push(
    other
      ? `No column looks like the provider’s id of a card: the draft names a row by ${shown(other.name)}, which is different in each of the first ${rows.length} rows. Check that it is in all.`
      : 'No column looks like the provider’s id of a card: say what names a row.',
  )
  return other
}

/** A sentence of a profile has at most 500 characters, and a name may have to be escaped. */
const SHOWN_MAX = 40
/** The place-holder in a draft for the name of the provider, which a file doesn't hold. */
const PROVIDER = 'name-of-the-provider'

/**
 * The draft of `on_file`, if there are columns that look like the id of a card, and like a customer or what travels with the
 * card. It is guessed from names alone, so a person must check each column.
 */
function onFileOf(columns: readonly ColumnGuess[]) {
  const named = (meaning: Meaning) =>
    columns.find(one => one.meaning === meaning && one.name.length <= SHOWN_MAX && isNameable(one.name, columns))?.name
  const card = named('card_id')
  const customer = named('customer_id')
  const networkIds = named('network_transaction_id')
  const linkId = named('transaction_link_id')
  if (card === undefined || (customer ?? networkIds ?? linkId) === undefined) return undefined
  const check = [
    `on_file.provider: write the provider’s name in place of ${PROVIDER}; the account there is not in the file: give --provider-account.`,
    `on_file.card_id: check that ${shown(card)} holds the provider’s id of each card, and the same one in later files.`,
    ...(customer === undefined
      ? []
      : [`on_file.customer_id: check that ${shown(customer)} holds the id of the customer.`]),
    ...(networkIds === undefined
      ? []
      : [
          `on_file.network_transaction_ids: check that ${shown(networkIds)} holds the network’s ids, not the provider’s own; where a cell holds several, add their separator.`,
        ]),
    ...(linkId === undefined
      ? []
      : [`on_file.transaction_link_id: check that ${shown(linkId)} holds Mastercard’s transaction link id.`]),
  ]
  return {
    check,
    columns: {
      provider: PROVIDER,
      card_id: `{${card}}`,
      ...(customer === undefined ? {} : { customer_id: `{${customer}}` }),
      ...(networkIds === undefined ? {} : { network_transaction_ids: { from: networkIds } }),
      ...(linkId === undefined ? {} : { transaction_link_id: { from: linkId } }),
    },
  }
}

/** Whether a profile can name the column: its name is usual, and no other column's. */
function isNameable(name: string, columns: readonly ColumnGuess[]): boolean {
  return isUsual(name) && columns.filter(column => column.name === name).length === 1
}

function isUsual(name: string): boolean {
  return FIELD.test(name) && !name.startsWith('^.') && !name.endsWith(':last4')
}

/** One sentence for each column that the draft would read but that has no unique name. */
function whyUnnameable(reads: readonly (string | undefined)[], columns: readonly ColumnGuess[]): string[] {
  const names = columns.map(({ name }) => name)
  return [...new Set(reads)].flatMap(name => {
    if (name === undefined) return []
    if (isNameable(name, columns)) return []
    const at = names.indexOf(name)
    const why = isUsual(name) ? 'stands there more than once and ' : ''
    return [`The name of column ${at + 1} (${shown(name)}) ${why}can’t stand in a profile: write #${at + 1} for it.`]
  })
}

function expiryOf(named: (meaning: Meaning) => ColumnGuess | undefined, open: string[]) {
  const month = named('expiry_month')
  const year = named('expiry_year')
  if (month && year) return { reads: [month.name, year.name], columns: { month: month.name, year: year.name } }
  const whole = named('expiry')
  const form = whole && settledForm(whole)
  if (whole && form) return { reads: [whole.name], columns: { from: whole.name, form } }
  if (whole === undefined) open.push('No column looks like an expiry: say which one holds it.')
  else open.push(`The form of ${shown(whole.name)} isn’t settled: ask the sender whether it is MMYY or YYMM.`)
  return undefined
}

function formatOf({ type, encoding, delimiter, header }: FileForm) {
  if (type !== 'delimited') return { type, encoding }
  return { type, encoding, delimiter, header: header ? 'exact' : 'none' }
}
