// The records of a chunk that made a token of their card, in columns: the form in which a result tells of them to a sender
// whose envelope has the claim `result_columns`. `records` of such a result holds only the other records, and `columns`
// names their places. References aren't repeated: the sender knows them by the line. A worker always makes the same text
// of the same records.
import { z } from 'zod'
import type { RecordResult } from '../outcome.ts'

/** The outcome of each of these records is `CREATED`, and its code 200. */
export const CreatedColumns = z.object({
  /** The line numbers of the records in the source; they grow. */
  line: z.array(z.int().min(1)),
  /** The 27 characters of each reuse token, one after the other. */
  reuse_token: z.string(),
  bin: z.array(z.string()),
  /** Four digits for each record, one after the other. */
  last_four: z.string(),
  expiry_month: z.array(z.int()),
  expiry_year: z.array(z.int()),
  /** '' for none. */
  brand: z.array(z.string()),
  /** `ADDED` if the record's owner got a source reference, else ''. */
  reference_outcome: z.array(z.enum(['', 'ADDED'])),
  /** The places in the chunk, from 0, of the records in `records`; they grow. */
  others: z.array(z.int().min(0)),
})
export type CreatedColumns = z.infer<typeof CreatedColumns>

/** What a result says of a record that made an ACTIVE vault token, beside the token and the reference. */
export interface ToldCreated {
  line: number
  bin: string
  lastFour: string
  month: number
  year: number
  brand: string | null
  /** Its owner got a source reference. */
  isAdded: boolean
}

const TOKEN_CHARS = 27
const LAST_FOUR_CHARS = 4

/** `reuseTokens`: those of the records, one after the other. `others`: the places of the other records. */
export function createdColumns(
  records: readonly ToldCreated[],
  reuseTokens: string,
  others: readonly number[],
): CreatedColumns {
  return {
    line: records.map(({ line }) => line),
    reuse_token: reuseTokens,
    bin: column(records.map(({ bin }) => bin)),
    last_four: records.map(({ lastFour }) => lastFour).join(''),
    expiry_month: column(records.map(({ month }) => month)),
    expiry_year: column(records.map(({ year }) => year)),
    brand: column(records.map(({ brand }) => brand ?? '')),
    reference_outcome: column(records.map(({ isAdded }) => (isAdded ? 'ADDED' : ''))),
    others: [...others],
  }
}

/** One value if the values are all the same. */
function column<Value>(values: Value[]): Value[] {
  const [first] = values
  return values.every(value => value === first) ? values.slice(0, 1) : values
}

/** What a result in rows says of the record at a place of the columns, without its reference. */
export function createdAt(columns: CreatedColumns, at: number): RecordResult {
  const { line, reuse_token, bin, last_four, expiry_month, expiry_year, brand, reference_outcome } = columns
  return {
    line: line[at] ?? 0,
    outcome: 'CREATED',
    code: 200,
    reference: undefined,
    reference_outcome: valueAt(reference_outcome, at) || undefined,
    reuse_token: reuse_token.slice(at * TOKEN_CHARS, (at + 1) * TOKEN_CHARS),
    bin: valueAt(bin, at),
    last_four: last_four.slice(at * LAST_FOUR_CHARS, (at + 1) * LAST_FOUR_CHARS),
    expiry_month: valueAt(expiry_month, at),
    expiry_year: valueAt(expiry_year, at),
    brand: valueAt(brand, at) || undefined,
  }
}

function valueAt<Value>(values: readonly Value[], at: number): Value | undefined {
  return values.length === 1 ? values[0] : values[at]
}
