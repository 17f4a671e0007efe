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

const AMOUNT = /^-?\d{1,18}$/

/** An amount in minor units as a decimal text, so that no JSON parser rounds it. */
const amount = () => z.string().regex(AMOUNT)

/**
 * A time in UTC with at most the store's precision (microseconds): rounding could move a transaction into another
 * month.
 */
const moment = () => z.iso.datetime().refine(isStorable, custom('field_range'))

function isStorable(value: string): boolean {
  const ms = Date.parse(value)
  return ms >= OLDEST_MS && ms < NEWEST_MS && !/\.\d{7}/.test(value)
}

const day = () => date().refine(isLedgerDay, custom('field_range'))

const isLedgerDay = (value: string) => value >= '2000' && value < '2100'

/** First six and last four digits, or first eight and last four of sixteen: never more (PCI DSS 3.4.1). */
const MASKED_CARD = /^(\d{6}\*{2,9}|\d{8}\*{4})\d{4}$/

const DIGITS_ALONE = /^[\d -]*$/
const CURRENCY = /^[A-Z]{3}$/

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
    for (const field of OWN_TEXTS)
      if (holdsMasked(line[field], line.masked_card))
        context.addIssue({ code: 'custom', path: [field], params: { reason: 'reference_pan' } })
  })
export type Transaction = z.infer<typeof Transaction>

/** Whether the text could hold the card number that the mask hides. */
function holdsMasked(text: string | undefined, masked: string | undefined): boolean {
  if (masked === undefined || !couldHoldNumber(text)) return false
  const [bin = '', lastFour = ''] = masked.split(/\*+/)
  return holdsPanLookalike(text, { bin, lastFour, length: masked.length })
}

function hasItsSign({ type, amount: text }: { type: TransactionType; amount: string }): boolean {
  const { least, most } = AMOUNT_SIGNS[type]
  const sign = /^-?0+$/.test(text) ? 0 : text.startsWith('-') ? -1 : 1
  return sign >= least && sign <= most
}

/** The rules of fields by hand. Each says yes only to a value that its schema takes and leaves as it is. */
const SOUND = {
  transaction_uid: value => UID.test(value),
  entity_uid: value => UID.test(value),
  merchant_reference: value => isText(value, 1, 128),
  type: value => Object.hasOwn(AMOUNT_SIGNS, value),
  brand: value => BRAND.test(value),
  masked_card: value => MASKED_CARD.test(value),
  token_reference: value => isText(value, 14, 255) && !DIGITS_ALONE.test(value),
  currency: value => CURRENCY.test(value) && minorUnit(value) !== undefined,
  amount: value => AMOUNT.test(value),
  fee: value => AMOUNT.test(value),
  commission: value => AMOUNT.test(value),
  created_at: value => MOMENT.test(value) && isStorable(value),
  settled_at: value => MOMENT.test(value) && isStorable(value),
  clearing_date: value => DAY.test(value) && isLedgerDay(value),
  clearing_merchant: value => isText(value, 1, 64),
  bank_account: value => isText(value, 1, 64),
  clearing_reference: value => isText(value, 1, 128),
  settlement_batch: value => isText(value, 1, 64),
} as const satisfies Record<keyof typeof fields, (value: string) => boolean>

/** A UUID in lower case: the schema turns others into it. */
const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const BRAND = /^[A-Z0-9_]{1,32}$/
const MOMENT = z.regexes.datetime({})
const DAY = z.regexes.date

const ASCII_TEXT = /^[ -~]*$/

/** Only for ASCII, because the schema counts code points and `length` UTF-16 units. */
function isText(value: string, least: number, most: number): boolean {
  return value.length >= least && value.length <= most && ASCII_TEXT.test(value)
}

const NEEDED = (Object.keys(fields) as (keyof typeof fields)[]).filter(name => !(fields[name] instanceof z.ZodOptional))

/**
 * Whether the schema takes the transaction and leaves it as it is: a fast check, which most lines pass. The schema decides
 * about all others: lines with a fault, a UUID in capitals or a text beyond ASCII.
 */
export function isPlain(given: Readonly<Record<string, unknown>>): given is Transaction {
  for (const name in given) {
    const value = given[name]
    if (!Object.hasOwn(SOUND, name) || typeof value !== 'string' || !SOUND[name as keyof typeof SOUND](value))
      return false
  }
  for (const name of NEEDED) if (given[name] === undefined) return false
  const line = given as Transaction
  return hasItsSign(line) && !OWN_TEXTS.some(field => holdsMasked(line[field], line.masked_card))
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
