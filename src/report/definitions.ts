// The table of report types. A type of the contract (src/job/report.ts) that is missing here doesn't compile. `null`:
// this release refuses the type.
import type { ReportType } from '../job/report.ts'
import type { Definition } from './definition.ts'
import { batch } from './definitions/batch.ts'
import { dailyTransaction } from './definitions/daily-transaction.ts'
import { invoice } from './definitions/invoice.ts'
import { merchantSettlement } from './definitions/merchant-settlement.ts'
import { partnerCommission } from './definitions/partner-commission.ts'
import { schemeToken } from './definitions/scheme-token.ts'
import { tokenActivity } from './definitions/token-activity.ts'

const DEFINITIONS = {
  MERCHANT_SETTLEMENT_REPORT: merchantSettlement,
  DAILY_TRANSACTION_REPORT: dailyTransaction,
  PARTNER_COMMISSION_REPORT: partnerCommission,
  INVOICE: invoice,
  TOKEN_ACTIVITY_REPORT: tokenActivity,
  SCHEME_TOKEN_REPORT: schemeToken,
  BATCH_REPORT: batch,
} as const satisfies Record<ReportType, Definition | null>

export function definitionOf(type: ReportType): Definition | null {
  return DEFINITIONS[type]
}
