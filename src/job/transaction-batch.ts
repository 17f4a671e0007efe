// `transaction-batch`: a chunk of ledger transactions. Amounts are integers in minor units of their currency.
import { z } from 'zod'
import { brandName, date, text, uuid } from './text.ts'

export const TRANSACTION_TYPES = ['SALE', 'REFUND', 'CHARGEBACK', 'CHARGEBACK_REVERSAL', 'ADJUSTMENT', 'FEE'] as const

/** Minor units as a decimal text, so that no JSON parser on the way rounds them. */
const amount = () => z.string().regex(/^-?\d{1,18}$/)

export const Transaction = z.strictObject({
  transaction_uid: uuid(),
  entity_uid: uuid(),
  merchant_reference: text(1, 128).optional(),
  type: z.enum(TRANSACTION_TYPES),
  brand: brandName().optional(),
  masked_card: z
    .string()
    .regex(/^\d{6}(\d{2})?\*{2,11}\d{4}$/)
    .optional(),
  token_reference: text(14, 255).optional(),
  currency: z.string().regex(/^[A-Z]{3}$/),
  amount: amount(),
  fee: amount(),
  commission: amount(),
  created_at: z.iso.datetime(),
  settled_at: z.iso.datetime().optional(),
  clearing_date: date().optional(),
  clearing_merchant: text(1, 64).optional(),
  bank_account: text(1, 64).optional(),
  clearing_reference: text(1, 128).optional(),
  settlement_batch: text(1, 64).optional(),
})
export type Transaction = z.infer<typeof Transaction>

export const TransactionBatch = z.strictObject({
  batch_id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  chunk: z.int().min(0).max(10_000_000),
  transactions: z
    .array(z.strictObject({ line: z.int().min(1), transaction: z.record(z.string(), z.unknown()) }))
    .min(1)
    .max(1000),
})
export type TransactionBatch = z.infer<typeof TransactionBatch>
