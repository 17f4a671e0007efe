// PARTNER_COMMISSION_REPORT: the commission of a period by day and clearing merchant, and a partner's share of it. The
// share is rounded half away from zero on the running sum of each currency, so that the lines' shares add up to the
// rounded share of the total.
import { z } from 'zod'
import { column, type Definition, planner, span } from '../definition.ts'
import { inOrder, invoicePeriod, OUT_OF_ORDER, percent } from '../invoice-period.ts'

const Parameters = z
  .strictObject({ ...invoicePeriod, partnerSharePercent: percent().default('100') })
  .refine(inOrder, OUT_OF_ORDER)

export const partnerCommission: Definition = {
  title: 'Partner commission report',
  query: 'commission',
  plan: planner(Parameters, ({ invoicePeriodFrom, invoicePeriodTo, partnerSharePercent }) => ({
    period: { from: invoicePeriodFrom, to: invoicePeriodTo },
    filter: { percent: partnerSharePercent },
    shares: [{ result: 'partnerShare', of: 'commission', percent: partnerSharePercent }],
    notes: [
      `Commission on transactions cleared ${span(invoicePeriodFrom, invoicePeriodTo)}; partner's share ${partnerSharePercent} %.`,
      'Shares are rounded half away from zero on the running sum of each currency: they add up to the rounded share of the whole.',
    ],
  })),
  columns: [
    column('currency', 'Currency', 'text', 8, 13),
    column('clearingDate', 'Clearing date', 'date', 13, 17),
    column('clearingMerchant', 'Clearing merchant', 'text', 24),
    column('transactions', 'Transactions', 'count', 12, 18),
    column('gross', 'Gross', 'money', 18),
    column('commission', 'Commission', 'money', 16),
    column('partnerShare', 'Partner share', 'money', 16),
    column('retained', 'Retained', 'money', 16),
  ],
  group: ['currency', 'clearingDate'],
  groupLabel: 'Clearing date',
  rules: [{ result: 'retained', plus: ['commission'], minus: ['partnerShare'] }],
  landscape: false,
  chart: { label: 'Commission by day', by: row => row['clearingDate'] ?? '', of: 'commission' },
}
