// The parameters of reports over a period of days. The period is at most 366 days, and its end isn't before its
// beginning.
import { z } from 'zod'
import { date } from '../job/envelope/text.ts'

const DAYS_MAX = 366
const DAY_MS = 86_400_000

/** A percentage as a text: `0` to `100` with up to four decimals. */
export const percent = () => z.string().regex(/^(100(\.0{1,4})?|\d{1,2}(\.\d{1,4})?)$/)

const daysBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / DAY_MS + 1

export const isPeriod = (from: string, to: string): boolean => from <= to && daysBetween(from, to) <= DAYS_MAX

export const invoicePeriod = { invoicePeriodFrom: date(), invoicePeriodTo: date() }

export const inOrder = ({
  invoicePeriodFrom,
  invoicePeriodTo,
}: {
  invoicePeriodFrom: string
  invoicePeriodTo: string
}) => isPeriod(invoicePeriodFrom, invoicePeriodTo)

/** The error for a period for which `inOrder` is false. */
export const OUT_OF_ORDER = { path: ['invoicePeriodTo'], params: { reason: 'field_range' } }
