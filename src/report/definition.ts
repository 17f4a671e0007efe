// The definition of a report type: its query, its columns, the groups in which columns are summed, and the identities
// that must hold. Each type has a file in definitions/; reading and writing are the same for all.
import type { z } from 'zod'
import { isRefusal, type Refusal } from '../errors.ts'
import { parse } from '../job/refusal.ts'

/** `money` and `count` columns are summed. A `number` column isn't. */
export type ColumnType = 'text' | 'date' | 'time' | 'money' | 'count' | 'number'

export interface Column {
  name: string
  label: string
  type: ColumnType
  /** The column's width in plain text, in characters. */
  width: number
  /** The column's share of a PDF page's width; 0: the PDF leaves the column out for lack of room. */
  paper: number
}

/** An identity: on every line and in every sum `result` equals the sum of `plus` minus the sum of `minus`. */
export interface Rule {
  result: string
  plus: readonly string[]
  minus: readonly string[]
}

/** An identity: `result` is `percent` of `of`, allocated over the lines of one currency (allocate.ts). */
interface Share {
  result: string
  of: string
  percent: string
}

/**
 * The names of the store's queries. Each query returns lines, group sums and totals (src/store/report/report-rows.ts).
 */
const QUERIES = [
  'settlement',
  'transactions',
  'commission',
  'invoice',
  'token-activity',
  'scheme-token',
  'batch',
] as const
export type QueryName = (typeof QUERIES)[number]

/** The parameters of a query, besides the entity. Days are `YYYY-MM-DD`; both ends are included. */
export interface Filter {
  from: string | null
  to: string | null
  percent: string
  batchId: string | null
  /** Whose batch it is; null: there is only one client that has a batch of this id. */
  clientId: string | null
}

/** A requested report with checked parameters. */
export interface Plan {
  /** The parameters as the report's record shows them. */
  parameters: Record<string, string | number | boolean>
  filter: Filter
  shares: readonly Share[]
  /** The period of the report and of its file name; undefined if the report shows a state at the time it is made. */
  period: { from: string; to: string } | undefined
  /** The word that a report without a period has in its file's name. */
  word?: string
  /** Texts under the report's title. */
  notes: readonly string[]
}

export interface Chart {
  label: string
  /** The label of the bar to which a line counts. */
  by: (row: Row) => string
  of: string
}

/** A line as the store returns it, by column. Whole numbers and minor units are texts. */
export type Row = Record<string, string | null>

export interface Definition {
  title: string
  query: QueryName
  plan(parameters: unknown): Plan | Refusal
  columns: readonly Column[]
  /**
   * Consecutive lines that are equal in these columns form a group, which is summed. If there is a money column, the
   * first of these columns is the currency.
   */
  group: readonly string[]
  /** The label of a group. */
  groupLabel: string
  /** The note of a report whose period begins before the day since which there is all that it counts. */
  incomplete?(since: string): string
  rules: readonly Rule[]
  landscape: boolean
  chart?: Chart
}

/** A period in words. */
export const span = (from: string, to: string): string => (from === to ? `on ${from}` : `from ${from} to ${to}`)

const NO_FILTER: Filter = { from: null, to: null, percent: '0', batchId: null, clientId: null }

/**
 * Makes the `plan` function of a definition: parses the parameters with `schema`, then calls `mean`. The period is part of
 * the filter; `mean` says what else is.
 */
export function planner<P extends Record<string, unknown>>(
  schema: z.ZodType<P>,
  mean: (
    parameters: P,
  ) => Partial<Omit<Plan, 'parameters' | 'filter'>> & Pick<Plan, 'notes'> & { filter?: Partial<Filter> },
): Definition['plan'] {
  return input => {
    const parsed = parse(schema, input, 'body.parameters')
    if (isRefusal(parsed)) return parsed
    const { period, filter, ...meant } = mean(parsed.value)
    return {
      shares: [],
      ...meant,
      period,
      parameters: definedOf(parsed.value),
      filter: { ...NO_FILTER, ...period, ...filter },
    }
  }
}

function definedOf(value: Record<string, unknown>): Plan['parameters'] {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Plan['parameters']
}

/** Makes a column. `paper` defaults to `width`. */
export const column = (name: string, label: string, type: ColumnType, width: number, paper = width): Column => ({
  name,
  label,
  type,
  width,
  paper,
})

export const isSummed = ({ type }: Column): boolean => type === 'money' || type === 'count'

export const hasMoney = ({ columns }: Definition): boolean => columns.some(({ type }) => type === 'money')
