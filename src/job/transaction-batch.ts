// `transaction-batch`: a chunk of ledger transactions. Amounts are integers in minor units of their currency. A wrong
// chunk is refused as a whole; a wrong transaction rejects only itself.
import { z } from 'zod'
import { minorUnit } from '../token/currency.ts'
import { holdsPanLookalike } from '../token/pan.ts'
import { LEDGER_CHUNK } from './choices.ts'
import { CHUNK_NUMBER_MAX, extentMembers } from './envelope/batch-extent.ts'
import { brandName, date, text, uuid } from './envelope/text.ts'
import { couldHoldNumber } from './pan-in-names.ts'

export const TRANSACTION_TYPES = ['SALE', 'REFUND', 'CHARGEBACK', 'CHARGEBACK_REVERSAL', 'ADJUSTMENT', 'FEE'] as const
export type TransactionType = (typeof TRANSACTION_TYPES)[number]

/**
 * The permitted signs of `amount`, the gross movement seen from the merchant. `fee` and `commission` are deducted and
 * may have either sign: a negative fee is money given back. So net = amount - fee - commission, for every type.
 */
export const AMOUNT_SIGNS = {
  SALE: { least: 0, most: 1 },
  CHARGEBACK_REVERSAL: { least: 0, most: 1 },
  REFUND: { least: -1, most: 0 },
  CHARGEBACK: { least: -1, most: 0 },
  ADJUSTMENT: { least: -1, most: 1 },
  // `FEE` is 0 gross: a charge that belongs to no transaction is in `fee` or `commission`.
  FEE: { least: 0, most: 0 },
} as const satisfies Record<TransactionType, { least: -1 | 0 | 1; most: -1 | 0 | 1 }>

/** The earliest date of a transaction; it bounds the number of months in a ledger. */
const OLDEST_MS = Date.UTC(2000, 0, 1)
/** How far `created_at` may lie in the future by the worker's clock, because clocks and time zones differ. */
export const AHEAD_MS_MAX = 86_400_000
const NEWEST_MS = Date.UTC(2100, 0, 1)

export { LEDGER_CHUNK } from './choices.ts'

const custom = (reason: string) => ({ params: { reason } })

/** An amount in minor units as a decimal text, so that no JSON parser rounds it. */
const amount = () => z.string().regex(/^-?\d{1,18}$/)

/**
 * A time in UTC with at most the store's precision (microseconds): rounding could move a transaction into another
 * month.
 */
const moment = () => z.iso.datetime().refine(isStorable, custom('field_range'))

function isStorable(value: string): boolean {
  const ms = Date.parse(value)
  return ms >= OLDEST_MS && ms < NEWEST_MS && !/\.\d{7}/.test(value)
}

const day = () => date().refine(value => value >= '2000' && value < '2100', custom('field_range'))

/** First six and last four digits, or first eight and last four of sixteen: never more (PCI DSS 3.4.1). */
const MASKED_CARD = /^(\d{6}\*{2,9}|\d{8}\*{4})\d{4}$/

const fields = {
  transaction_uid: uuid(),
  entity_uid: uuid(),
  merchant_reference: text(1, 128).optional(),
  type: z.enum(TRANSACTION_TYPES),
  brand: brandName().optional(),
  masked_card: z.string().regex(MASKED_CARD).optional(),
  // A text of digits alone could be a card number.
  token_reference: text(14, 255)
    .refine(value => !/^[\d -]*$/.test(value), custom('field_format'))
    .optional(),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/)
    .refine(code => minorUnit(code) !== undefined, custom('currency_unknown')),
  amount: amount(),
  fee: amount(),
  commission: amount(),
  created_at: moment(),
  settled_at: moment().optional(),
  clearing_date: day().optional(),
  clearing_merchant: text(1, 64).optional(),
  bank_account: text(1, 64).optional(),
  clearing_reference: text(1, 128).optional(),
  settlement_batch: text(1, 64).optional(),
}

export const TRANSACTION_FIELDS = Object.keys(fields) as readonly (keyof typeof fields)[]

/**
 * Texts that the sender chose and that are stored and reported unchanged. None may hold the card number that the line's
 * mask hides.
 */
const OWN_TEXTS = [
  'merchant_reference',
  'clearing_merchant',
  'bank_account',
  'clearing_reference',
  'settlement_batch',
] as const

export const Transaction = z
  .strictObject(fields)
  .refine(hasItsSign, { path: ['amount'], ...custom('amount_sign') })
  .superRefine((line, context) => {
    const { masked_card: masked } = line
    if (masked === undefined) return
    const [bin = '', lastFour = ''] = masked.split(/\*+/)
    const shown = { bin, lastFour, length: masked.length }
    for (const field of OWN_TEXTS)
      if (couldHoldNumber(line[field]) && holdsPanLookalike(line[field] ?? '', shown))
        context.addIssue({ code: 'custom', path: [field], params: { reason: 'reference_pan' } })
  })
export type Transaction = z.infer<typeof Transaction>

function hasItsSign({ type, amount: text }: { type: TransactionType; amount: string }): boolean {
  const { least, most } = AMOUNT_SIGNS[type]
  const sign = /^-?0+$/.test(text) ? 0 : text.startsWith('-') ? -1 : 1
  return sign >= least && sign <= most
}

/** A transaction and its line number in the source. The transaction isn't checked yet. */
export interface TransactionLine {
  line: number
  transaction: Record<string, unknown>
}

const LINE_MAX = 2_147_483_647

function isLine(value: unknown): value is TransactionLine {
  if (typeof value !== 'object' || value === null) return false
  const { line, transaction, ...rest } = value as Partial<TransactionLine>
  const placed = typeof line === 'number' && Number.isInteger(line) && line >= 1 && line <= LINE_MAX
  const plain = typeof transaction === 'object' && transaction !== null && !Array.isArray(transaction)
  return placed && plain && Object.keys(rest).length === 0
}

// Checked by hand: a zod schema would copy a thousand records, which takes as long as the rest of the work.
const lines = z
  .array(
    z.unknown().meta({
      type: 'object',
      required: ['line', 'transaction'],
      additionalProperties: false,
      properties: { line: { type: 'integer', minimum: 1, maximum: LINE_MAX }, transaction: { type: 'object' } },
    }),
  )
  .min(1)
  .max(LEDGER_CHUNK.recordsMax)
  .refine(all => all.every(isLine), custom('field_type'))

export const TransactionBatch = z.strictObject({
  batch_id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  chunk: z.int().min(0).max(CHUNK_NUMBER_MAX),
  ...extentMembers,
  transactions: lines,
})
export type TransactionBatch = z.infer<typeof TransactionBatch>

/** How many lines a request holds; the request may be malformed. */
export function linesIn({ transactions }: { transactions?: unknown }): number | undefined {
  return Array.isArray(transactions) ? transactions.length : undefined
}

/** The lines of a parsed request. */
export function linesOf(request: TransactionBatch): readonly TransactionLine[] {
  return request.transactions as TransactionLine[]
}
