// The records of a chunk that made a token of their card, in columns: the form in which a result tells of them to a sender
// whose envelope has the claim `result_columns`. `records` of such a result holds only the other records, and `columns`
// names their places. References aren't repeated: the sender knows them by the line. A worker always makes the same text
// of the same records.
import { z } from 'zod'
import { formatReuseTokens } from '../../token/token.ts'
import type { RecordResult } from '../outcome.ts'
import { inOrder } from '../record-columns.ts'

/** The outcome of each of these records is `CREATED`, and its code 200. */
export const CreatedColumns = z.object({
  /** The line numbers of the records in the source; they grow. */
  line: z.array(z.int().min(1)),
  /** The 27 characters of each reuse token, one after the other; empty for a dry run, as is all that tells of the card. */
  reuse_token: z.string(),
  bin: z.array(z.string()),
  /** Four digits for each record, with a comma between two records: digits alone, or with blanks, could look like a card number. */
  last_four: z.string(),
  /** 0 for none. */
  expiry_month: z.array(z.int()),
  /** 0 for none. */
  expiry_year: z.array(z.int()),
  /** '' for none. */
  brand: z.array(z.string()),
  /** `ADDED` if the record's owner got a source reference, else ''. */
  reference_outcome: z.array(z.enum(['', 'ADDED'])),
  /** The places in the chunk, from 0, of the records in `records`; they grow. */
  others: z.array(z.int().min(0)),
})
export type CreatedColumns = z.infer<typeof CreatedColumns>

/** What an answer says of ACTIVE vault tokens. Values of the same place belong to the record that made the token. */
export interface CreatedRecords {
  lines: readonly number[]
  references: readonly (string | undefined)[]
  /** The ids of the tokens: 16 bytes each, one after the other. */
  ids: Buffer
  tokenIds: readonly string[]
  bins: readonly string[]
  lastFours: readonly string[]
  /** 0 for none. */
  expiryMonths: readonly number[]
  expiryYears: readonly number[]
  brands: readonly (string | null)[]
  /** The cards as the records gave them (`presentedText`). */
  presented: readonly string[]
  /** Whether the record's owner got a source reference. */
  isAdded: readonly boolean[]
  /** The places in the order of their lines; a place that isn't among them made no token after all. */
  byLine: readonly number[]
  /** False for a dry run: an answer tells neither of tokens nor of cards. */
  isNamed: boolean
}

const TOKEN_CHARS = 27
const LAST_FOUR_CHARS = 4
/** With the comma behind them. */
const LAST_FOUR_STEP = LAST_FOUR_CHARS + 1

/** `others`: the places in the chunk of the other records. */
export function createdColumns(created: CreatedRecords, others: readonly number[]): CreatedColumns {
  const { isAdded, byLine } = created
  return {
    line: byLine.map(place => created.lines[place] ?? 0),
    ...(created.isNamed ? cardColumns(created) : NO_CARDS),
    reference_outcome: column(byLine.map(place => (isAdded[place] ? 'ADDED' : ''))),
    others: [...others],
  }
}

type CardColumns = Omit<CreatedColumns, 'line' | 'reference_outcome' | 'others'>

const NO_CARDS: CardColumns = {
  reuse_token: '',
  bin: [''],
  last_four: '',
  expiry_month: [0],
  expiry_year: [0],
  brand: [''],
}

function cardColumns({ ids, bins, lastFours, expiryMonths, expiryYears, brands, byLine }: CreatedRecords): CardColumns {
  return {
    reuse_token: formatReuseTokens(ids, byLine),
    bin: column(byLine.map(place => bins[place] ?? '')),
    last_four: byLine.map(place => lastFours[place]).join(','),
    expiry_month: column(byLine.map(place => expiryMonths[place] ?? 0)),
    expiry_year: column(byLine.map(place => expiryYears[place] ?? 0)),
    brand: column(byLine.map(place => brands[place] ?? '')),
  }
}

/** One value if the values are all the same. */
function column<Value>(values: Value[]): Value[] {
  const [first] = values
  return values.every(value => value === first) ? values.slice(0, 1) : values
}

/** What a result in rows says of the record at a place of the columns, without its reference. */
function createdAt(columns: CreatedColumns, at: number): RecordResult {
  const { line, reuse_token, bin, last_four, expiry_month, expiry_year, brand, reference_outcome } = columns
  return {
    line: line[at] ?? 0,
    outcome: 'CREATED',
    code: 200,
    reference: undefined,
    reference_outcome: valueAt(reference_outcome, at) || undefined,
    reuse_token: reuse_token.slice(at * TOKEN_CHARS, (at + 1) * TOKEN_CHARS) || undefined,
    bin: valueAt(bin, at) || undefined,
    last_four: last_four.slice(at * LAST_FOUR_STEP, at * LAST_FOUR_STEP + LAST_FOUR_CHARS) || undefined,
    expiry_month: valueAt(expiry_month, at) || undefined,
    expiry_year: valueAt(expiry_year, at) || undefined,
    brand: valueAt(brand, at) || undefined,
  }
}

/**
 * The records of a result in the order of the chunk, those in its columns among them, which have no references.
 * Undefined for a result without records.
 */
export function recordsOf({
  records,
  columns,
}: {
  records?: RecordResult[] | undefined
  columns?: CreatedColumns | undefined
}): RecordResult[] | undefined {
  if (!records || !columns) return records
  if (records.length !== columns.others.length)
    throw new Error('broken law: each place beside the columns has its record')
  return [...inOrder({ columns })].map(item =>
    'other' in item ? (records[item.other] as RecordResult) : createdAt(columns, item.at),
  )
}

function valueAt<Value>(values: readonly Value[], at: number): Value | undefined {
  return values.length === 1 ? values[0] : values[at]
}
