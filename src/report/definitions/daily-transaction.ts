// DAILY_TRANSACTION_REPORT: every transaction that was created on one day (UTC), by type. The settlement report lists
// what was cleared.
import { z } from 'zod'
import { date } from '../../job/envelope/text.ts'
import { type Definition, planner } from '../definition.ts'
import { LEDGER_COLUMNS, NET } from '../ledger-columns.ts'

export const dailyTransaction: Definition = {
  title: 'Daily transaction report',
  query: 'transactions',
  plan: planner(z.strictObject({ reportableDay: date() }), ({ reportableDay }) => ({
    period: { from: reportableDay, to: reportableDay },
    notes: [`Transactions created on ${reportableDay} (UTC), by type. Net = gross - fee - commission.`],
  })),
  columns: LEDGER_COLUMNS,
  group: ['currency', 'type'],
  groupLabel: 'Type',
  rules: [NET],
  landscape: true,
  chart: { label: 'Gross by hour (UTC)', by: row => `${(row['createdOn'] ?? '').slice(11, 13)}h`, of: 'gross' },
}
