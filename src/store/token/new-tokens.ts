// New tokens of a chunk in columns: values at the same place in each column belong to the same token. They are vault
// tokens of type REUSE for cards that have no token yet, and one receipt makes all of them. This file sends no statement.
import type { CreatedRecords } from '../../job/answer/created-columns.ts'
import { byteas, integers, smallints, texts, uuids } from '../binary.ts'
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
  expiry_month: { type: 'smallint', value: t => smallints(t.expiryMonths) },
  expiry_year: { type: 'smallint', value: t => smallints(t.expiryYears) },
  card_holder_name: { type: 'text', value: t => texts(t.cardHolderNames) },
  brand: { type: 'text', value: t => texts(t.brands) },
  bin_range: { type: 'integer', value: t => integers(t.binRanges) },
  batch_line: { type: 'integer', value: t => integers(t.lines) },
}
const INPUTS = Object.entries(ARRAYS)
/** The first parameter behind the arrays. */
const NEXT = INPUTS.length + 1

/** The values that are the same in all rows. A column that is neither here nor a parameter is null. */
const SAME: Readonly<Record<string, string>> = {
  token_scope: `$${NEXT}::uuid`,
  created_at: `$${NEXT + 1}::timestamptz`,
  updated_at: `$${NEXT + 1}::timestamptz`,
  last_receipt: `$${NEXT + 2}::uuid`,
  batch_no: `$${NEXT + 3}::bigint`,
  status: `'ACTIVE'`,
  token_type: `'REUSE'`,
  cards: 'array[a.card]',
  version: '1',
  batch_created: 'true',
}

const VALUES = COLUMNS.map(({ name, type, as }) => {
  const value = SAME[name] ?? (name in ARRAYS ? `a.${name}` : `null::${as ?? type}`)
  return `${value} as ${name}`
})

/** A derived table of new tokens, of which there must be at least one; its values are `valuesOf`. */
export const SOURCE = `(select ${VALUES.join(', ')} from unnest(${INPUTS.map(([, { type }], index) => `$${index + 1}::${type}[]`).join(', ')}) as a(${INPUTS.map(([name]) => name).join(', ')})) as v(${NAMES})`

export function valuesOf(tokens: NewTokens): (Buffer | string)[] {
  const { tokenScope, now, receiptId, batchNo } = tokens.shared
  return [
    ...INPUTS.map(([, { value }]) => value(tokens)),
    ...[tokenScope, new Date(now).toISOString(), receiptId, String(batchNo)],
  ]
}
