// The columns of one ledger line, shared by the two reports that list single transactions.
import { type Column, column, type Rule } from './definition.ts'

export const NET: Rule = { result: 'net', plus: ['gross'], minus: ['fee', 'commission'] }

export const LEDGER_COLUMNS: readonly Column[] = [
  column('currency', 'Currency', 'text', 8, 12),
  column('settlementBatch', 'Settlement batch', 'text', 20),
  column('transactionUid', 'Transaction', 'text', 36, 43),
  column('merchantReference', 'Merchant reference', 'text', 24, 23),
  column('type', 'Type', 'text', 19, 22),
  column('brand', 'Brand', 'text', 12, 17),
  column('maskedCard', 'Card', 'text', 19, 22),
  column('createdOn', 'Created (UTC)', 'time', 20, 22),
  column('settledOn', 'Settled (UTC)', 'time', 20, 0),
  column('clearingDate', 'Clearing date', 'date', 13, 0),
  column('clearingMerchant', 'Clearing merchant', 'text', 20, 0),
  column('clearingReference', 'Clearing reference', 'text', 24, 0),
  column('bankAccount', 'Bank account', 'text', 24, 0),
  column('tokenReference', 'Token', 'text', 27, 0),
  column('gross', 'Gross', 'money', 18, 17),
  column('fee', 'Fee', 'money', 14, 13),
  column('commission', 'Commission', 'money', 14, 16),
  column('net', 'Net', 'money', 18, 17),
]
