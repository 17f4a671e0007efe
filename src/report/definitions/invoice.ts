// INVOICE: a merchant's charges for a period, by type and brand: fees and commission, and tax on both if a rate is
// given. Amounts are rounded as in partner-commission.ts. The issuer numbers invoices in its own system; here the
// report's uid identifies the invoice.
import { z } from 'zod'
import { column, type Definition, planner, span } from '../definition.ts'
import { inOrder, invoicePeriod, OUT_OF_ORDER, percent } from '../invoice-period.ts'

const Parameters = z
  .strictObject({ ...invoicePeriod, taxPercent: percent().default('0') })
  .refine(inOrder, OUT_OF_ORDER)

export const invoice: Definition = {
  title: 'Invoice',
  query: 'invoice',
  plan: planner(Parameters, ({ invoicePeriodFrom, invoicePeriodTo, taxPercent }) => ({
    period: { from: invoicePeriodFrom, to: invoicePeriodTo },
    filter: { percent: taxPercent },
    shares: [{ result: 'tax', of: 'charge', percent: taxPercent }],
    notes: [
      `Services for transactions cleared ${span(invoicePeriodFrom, invoicePeriodTo)}. Charge = fee + commission; tax ${taxPercent} % of the charge.`,
      'Tax is rounded half away from zero on the running sum of each currency: its lines add up to the tax on the whole.',
    ],
  })),
  columns: [
    column('currency', 'Currency', 'text', 8, 13),
    column('type', 'Type', 'text', 19, 28),
    column('brand', 'Brand', 'text', 12, 21),
    column('transactions', 'Transactions', 'count', 12, 18),
    column('gross', 'Gross', 'money', 18, 0),
    column('fee', 'Fee', 'money', 16, 17),
    column('commission', 'Commission', 'money', 16, 17),
    column('charge', 'Charge', 'money', 16, 17),
    column('tax', 'Tax', 'money', 16),
    column('due', 'Amount due', 'money', 18),
  ],
  group: ['currency', 'type'],
  groupLabel: 'Type',
  rules: [
    { result: 'charge', plus: ['fee', 'commission'], minus: [] },
    { result: 'due', plus: ['charge', 'tax'], minus: [] },
  ],
  landscape: false,
  chart: { label: 'Charge by brand', by: row => row['brand'] ?? 'other', of: 'charge' },
}
