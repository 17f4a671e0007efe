// New tokens of a chunk in columns: values at the same place in each column belong to the same token. They are vault
// tokens of type REUSE for cards that have no token yet, and one receipt makes all of them. This file sends no statement.
import type { CreatedRecords } from '../../job/answer/created-columns.ts'
import { byteas, dates, integers, smallints, texts, uuids } from '../binary.ts'
import { COLUMNS, NAMES } from './token-row.ts'

/** The columns that are stored of what an answer says of these tokens. */
type Told = 'ids' | 'lines' | 'bins' | 'lastFours' | 'expiryMonths' | 'expiryYears' | 'brands'

export interface NewTokens extends Pick<CreatedRecords, Told> {
  /** The fingerprints: 16 bytes each, one after the other. */
  cards: Buffer
  /** The sealed PANs, one after the other, and where each of them ends. */
  sealed: Buffer
  sealedEnds: readonly number[]
  sealVersions: readonly number[]
  cardHolderNames: readonly (string | null)[]
  binRanges: readonly (number | null)[]
  /** Undefined if all of it would be null. */
  more:
    | {
        cardSequences: readonly (string | null)[]
        startMonths: readonly (number | null)[]
        startYears: readonly (number | null)[]
        cardBrands: readonly (string | null)[]
        tokenExpiryDates: readonly (string | null)[]
      }
    | undefined
  /** Who gives what of each token, as JSON; undefined unless the batch has `newest`. */
  givenAt: readonly string[] | undefined
  shared: {
    tokenScope: string
    /** The version of the key with which all fingerprints were made, and the turn of the phase in which they were made. */
    cardVersion: number
    turn: string
    /** ms since the epoch. */
    now: number
    receiptId: string
    batchNo: number
  }
}

interface Input {
  type: string
  value: (tokens: NewTokens) => Buffer
}

/** The columns with an array parameter each, from $1 on. */
const ARRAYS: Readonly<Record<string, Input>> = {
  token_id: { type: 'uuid', value: t => uuids(t.ids) },
  card: { type: 'uuid', value: t => uuids(t.cards) },
  sealed: { type: 'bytea', value: t => byteas(t.sealed, t.sealedEnds) },
  seal_version: { type: 'smallint', value: t => smallints(t.sealVersions) },
  bin: { type: 'text', value: t => texts(t.bins) },
  last_four: { type: 'text', value: t => texts(t.lastFours) },
  expiry_month: { type: 'smallint', value: t => smallints(t.expiryMonths.map(orNull)) },
  expiry_year: { type: 'smallint', value: t => smallints(t.expiryYears.map(orNull)) },
  card_holder_name: { type: 'text', value: t => texts(t.cardHolderNames) },
  brand: { type: 'text', value: t => texts(t.brands) },
  bin_range: { type: 'integer', value: t => integers(t.binRanges) },
  batch_line: { type: 'integer', value: t => integers(t.lines) },
}
/** Those of `more`, behind the others. */
const MORE: Readonly<Record<string, Input>> = {
  card_sequence: { type: 'text', value: t => texts(t.more?.cardSequences ?? []) },
  start_month: { type: 'smallint', value: t => smallints(t.more?.startMonths ?? []) },
  start_year: { type: 'smallint', value: t => smallints(t.more?.startYears ?? []) },
  card_brand: { type: 'text', value: t => texts(t.more?.cardBrands ?? []) },
  token_expiry_date: { type: 'date', value: t => dates(t.more?.tokenExpiryDates ?? []) },
}

/** That of `givenAt`, behind all others. */
const GIVEN: Readonly<Record<string, Input>> = {
  given_at: { type: 'text', value: t => texts(t.givenAt ?? []) },
}

const orNull = (value: number) => (value === 0 ? null : value)

/**
 * The values that are the same in all rows. A column that is neither here nor a parameter is null. `next`: the first
 * parameter behind the arrays.
 */
const sameFrom = (next: number): Readonly<Record<string, string>> => ({
  token_scope: `$${next}::uuid`,
  created_at: `$${next + 1}::timestamptz`,
  updated_at: `$${next + 1}::timestamptz`,
  last_receipt: `$${next + 2}::uuid`,
  batch_no: `$${next + 3}::bigint`,
  status: `'ACTIVE'`,
  token_type: `'REUSE'`,
  cards: 'array[a.card]',
  version: '1',
  batch_created: 'true',
})

/** A derived table of new tokens, of which there must be at least one. */
function sourceOf(arrays: Readonly<Record<string, Input>>): string {
  const inputs = Object.entries(arrays)
  const same = sameFrom(inputs.length + 1)
  const values = COLUMNS.map(({ name, type, as }) => {
    const value = same[name] ?? (name in arrays ? `a.${name}::${as ?? type}` : `null::${as ?? type}`)
    return `${value} as ${name}`
  })
  const parameters = inputs.map(([, { type }], index) => `$${index + 1}::${type}[]`).join(', ')
  const names = inputs.map(([name]) => name).join(', ')
  return `(select ${values.join(', ')} from unnest(${parameters}) as a(${names})) as v(${NAMES})`
}

interface Source {
  /** A part of the statement's name. */
  name: string
  /** Its values are those of `valuesOf`. */
  text: string
  inputs: readonly Input[]
}

function openSource(name: string, arrays: Readonly<Record<string, Input>>): Source {
  return { name, text: sourceOf(arrays), inputs: Object.values(arrays) }
}

const PLAIN = openSource('columns', ARRAYS)
const WHOLE = openSource('whole-columns', { ...ARRAYS, ...MORE })
const DATED = openSource('dated-columns', { ...ARRAYS, ...MORE, ...GIVEN })

export function sourceFor({ more, givenAt }: Pick<NewTokens, 'more' | 'givenAt'>): Source {
  if (givenAt) return DATED
  return more ? WHOLE : PLAIN
}

export function valuesOf(tokens: NewTokens): (Buffer | string)[] {
  const { tokenScope, now, receiptId, batchNo } = tokens.shared
  return [
    ...sourceFor(tokens).inputs.map(({ value }) => value(tokens)),
    ...[tokenScope, new Date(now).toISOString(), receiptId, String(batchNo)],
  ]
}
