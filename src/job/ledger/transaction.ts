// A transaction of the ledger: its fields and their rules. Amounts are integers in minor units of their currency. The
// chunk is in ../transaction-batch.ts.
import { z } from 'zod'
import { minorUnit } from '../../token/currency.ts'
import { holdsPanLookalike } from '../../token/pan.ts'
import { brandName, date, text, uuid } from '../envelope/text.ts'
import { couldHoldNumber } from '../pan-in-names.ts'

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

export const custom = (reason: string) => ({ params: { reason } })

export const AMOUNT = /^-?\d{1,18}$/

/** An amount in minor units as a decimal text, so that no JSON parser rounds it. */
const amount = () => z.string().regex(AMOUNT)

/**
 * A time in UTC with at most the store's precision (microseconds): rounding could move a transaction into another
 * month.
 */
const moment = () => z.iso.datetime().refine(isStorable, custom('field_range'))

export function isStorable(value: string): boolean {
  const ms = Date.parse(value)
  return ms >= OLDEST_MS && ms < NEWEST_MS && !/\.\d{7}/.test(value)
}

const day = () => date().refine(isLedgerDay, custom('field_range'))

export const isLedgerDay = (value: string) => value >= '2000' && value < '2100'

/** First six and last four digits, or first eight and last four of sixteen: never more (PCI DSS 3.4.1). */
export const MASKED_CARD = /^(\d{6}\*{2,9}|\d{8}\*{4})\d{4}$/

export const DIGITS_ALONE = /^[\d -]*$/
export const CURRENCY = /^[A-Z]{3}$/

const fields = {
  transaction_uid: uuid(),
  entity_uid: uuid(),
  merchant_reference: text(1, 128).optional(),
  type: z.enum(TRANSACTION_TYPES),
  brand: brandName().optional(),
  masked_card: z.string().regex(MASKED_CARD).optional(),
  // A text of digits alone could be a card number.
  token_reference: text(14, 255)
    .refine(value => !DIGITS_ALONE.test(value), custom('field_format'))
    .optional(),
  currency: z
    .string()
    .regex(CURRENCY)
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

export type TransactionField = keyof typeof fields
export const TRANSACTION_FIELDS = Object.keys(fields) as readonly TransactionField[]
/** The fields that a transaction can't be without. */
export const NEEDED_FIELDS = TRANSACTION_FIELDS.filter(name => !(fields[name] instanceof z.ZodOptional))

/**
 * Texts that the sender chose and that are stored and reported unchanged. None may hold the card number that the line's
 * mask hides.
 */
export const OWN_TEXTS = [
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
    for (const field of OWN_TEXTS)
      if (holdsMasked(line[field], line.masked_card))
        context.addIssue({ code: 'custom', path: [field], params: { reason: 'reference_pan' } })
  })
export type Transaction = z.infer<typeof Transaction>

/** Whether the text could hold the card number that the mask hides. */
export function holdsMasked(text: string | undefined, masked: string | undefined): boolean {
  if (masked === undefined || !couldHoldNumber(text)) return false
  const [bin = '', lastFour = ''] = masked.split(/\*+/)
  return holdsPanLookalike(text, { bin, lastFour, length: masked.length })
}

export function hasItsSign({ type, amount: text }: { type: TransactionType; amount: string }): boolean {
  const { least, most } = AMOUNT_SIGNS[type]
  const sign = /^-?0+$/.test(text) ? 0 : text.startsWith('-') ? -1 : 1
  return sign >= least && sign <= most
}
