// MERCHANT_SETTLEMENT_REPORT: what was cleared for a merchant on one day, line by line and by settlement batch. It is
// no statement of account: only the bank knows opening and closing balances.
import { z } from 'zod'
import { date } from '../../job/envelope/text.ts'
import { type Definition, planner } from '../definition.ts'
import { LEDGER_COLUMNS, NET } from '../ledger-columns.ts'

export const merchantSettlement: Definition = {
  title: 'Merchant settlement report',
  query: 'settlement',
  plan: planner(z.strictObject({ clearingDate: date() }), ({ clearingDate }) => ({
    period: { from: clearingDate, to: clearingDate },
    notes: [`Transactions with clearing date ${clearingDate}, by settlement batch. Net = gross - fee - commission.`],
  })),
  columns: LEDGER_COLUMNS,
  group: ['currency', 'settlementBatch'],
  groupLabel: 'Settlement batch',
  rules: [NET],
  landscape: true,
  chart: { label: 'Gross by day of sale', by: row => (row['createdOn'] ?? '').slice(0, 10), of: 'gross' },
}
