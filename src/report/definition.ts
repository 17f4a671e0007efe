// The definition of a report type: its query, its columns, which of them are summed by what, and the identities that
// must hold. Each type has a file in definitions/; reading and writing are the same for all.
import type { z } from 'zod'
import { isRefusal, type Refusal } from '../errors.ts'
import { parse } from '../job/refusal.ts'

/** `money` and `count` columns are summed, each `number` stands for itself. */
export type ColumnType = 'text' | 'date' | 'time' | 'money' | 'count' | 'number'

export interface Column {
  name: string
  label: string
  type: ColumnType
  /** Characters it has in plain text. */
  width: number
  /** Its share of the width of a PDF's page; 0: left out, for there is no room for everything. */
  paper: number
}

/** `result` is the sum of `plus` less those of `minus`, on every line and in every sum. */
export interface Rule {
  result: string
  plus: readonly string[]
  minus: readonly string[]
}

/** `result` is `percent` of `of`, allocated over the lines of one currency (allocate.ts). */
interface Share {
  result: string
  of: string
  percent: string
}

/** The store's queries: each answers lines, group sums and totals (src/store/report/report-rows.ts). */
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

/** The parameters of a query beside the entity; days are `YYYY-MM-DD`, both included. */
export interface Filter {
  from: string | null
  to: string | null
  percent: string
  batchId: string | null
}

/** A requested report with checked parameters. */
export interface Plan {
  /** As the record shows them. */
  parameters: Record<string, string | number | boolean>
  filter: Filter
  shares: readonly Share[]
  /** The period, also for the file's name; absent where the report is about the moment it is made. */
  period: { from: string; to: string } | undefined
  /** A word for the file's name in place of a period. */
  word?: string
  /** Stands under the title. */
  notes: readonly string[]
}

export interface Chart {
  label: string
  /** The bar that a line belongs to. */
  by: (row: Row) => string
  of: string
}

/** A line as the store answers it, by column: whole numbers and minor units as texts. */
export type Row = Record<string, string | null>

export interface Definition {
  title: string
  query: QueryName
  plan(parameters: unknown): Plan | Refusal
  columns: readonly Column[]
  /**
   * Lines that are equal in these columns follow each other and are summed. Where there is money, the currency is the
   * first.
   */
  group: readonly string[]
  /** What one group is called. */
  groupLabel: string
  rules: readonly Rule[]
  landscape: boolean
  chart?: Chart
}

/** A period in words. */
export const span = (from: string, to: string): string => (from === to ? `on ${from}` : `from ${from} to ${to}`)

/** The `plan` of a definition: parameters by `schema`, then what they mean. */
export function planner<P extends Record<string, unknown>>(
  schema: z.ZodType<P>,
  mean: (parameters: P) => Partial<Omit<Plan, 'parameters'>> & Pick<Plan, 'notes'>,
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
      filter: filter ?? { from: period?.from ?? null, to: period?.to ?? null, percent: '0', batchId: null },
    }
  }
}

function definedOf(value: Record<string, unknown>): Plan['parameters'] {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Plan['parameters']
}

/** `paper`: as its width in text, unless told. */
export const column = (name: string, label: string, type: ColumnType, width: number, paper = width): Column => ({
  name,
  label,
  type,
  width,
  paper,
})

export const isSummed = ({ type }: Column): boolean => type === 'money' || type === 'count'

export const hasMoney = ({ columns }: Definition): boolean => columns.some(({ type }) => type === 'money')
