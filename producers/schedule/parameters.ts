// The parameters of a nightly report, by its type: the business date, and those that the schedule sets. The worker that
// makes the report checks whether its type accepts them.
import type { ReportType } from '../../src/job/report.ts'

export type Parameters = Record<string, string | number | boolean>

const forPeriod = (date: string): Parameters => ({ invoicePeriodFrom: date, invoicePeriodTo: date })

/** `null`: a report of this type isn't about a day, so it can't be scheduled. */
const BY_DATE = {
  MERCHANT_SETTLEMENT_REPORT: date => ({ clearingDate: date }),
  DAILY_TRANSACTION_REPORT: date => ({ reportableDay: date }),
  PARTNER_COMMISSION_REPORT: forPeriod,
  INVOICE: forPeriod,
  TOKEN_ACTIVITY_REPORT: date => ({ reportableDay: date }),
  SCHEME_TOKEN_REPORT: null,
  BATCH_REPORT: null,
} as const satisfies Record<ReportType, ((date: string) => Parameters) | null>

/** The parameters of one report; undefined for a type that can't be scheduled. */
export function parametersOf(type: ReportType, businessDate: string, fixed: Parameters): Parameters | undefined {
  const byDate: ((date: string) => Parameters) | null = BY_DATE[type]
  return byDate ? { ...fixed, ...byDate(businessDate) } : undefined
}
