// The rules of a transaction as plain functions, without zod: a fast check, which most lines pass. It refuses no line:
// a line that doesn't pass is checked by the schema.
import { z } from 'zod'
import { minorUnit } from '../../token/currency.ts'
import { couldHoldNumber } from '../pan-in-names.ts'
import { TEXT_FIELDS, type TransactionColumns, UID, valueAt } from './columns.ts'
import {
  AMOUNT,
  AMOUNT_SIGNS,
  CURRENCY,
  DIGITS_ALONE,
  hasItsSign,
  holdsMasked,
  isLedgerDay,
  isStorable,
  MASKED_CARD,
  NEEDED_FIELDS,
  OWN_TEXTS,
  type Transaction,
  type TransactionField,
  type TransactionType,
} from './transaction.ts'

/** The rules of the fields. Each returns true only for a value that the field's schema accepts and leaves unchanged. */
export const SOUND = {
  // The schema turns other UUIDs into lower case.
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
} as const satisfies Record<TransactionField, (value: string) => boolean>

const BRAND = /^[A-Z0-9_]{1,32}$/
const MOMENT = z.regexes.datetime({})
const DAY = z.regexes.date

const ASCII_TEXT = /^[ -~]*$/

/** False for a text beyond ASCII, because the schema counts code points, but `length` UTF-16 units. */
function isText(value: string, least: number, most: number): boolean {
  return value.length >= least && value.length <= most && ASCII_TEXT.test(value)
}

/**
 * Whether the schema is sure to accept the transaction and to leave it unchanged. If false, the schema decides: the
 * line may be invalid, or have a UUID in capitals or a text beyond ASCII.
 */
export function isPlain(given: Readonly<Record<string, unknown>>): given is Transaction {
  for (const name in given) {
    const value = given[name]
    if (!Object.hasOwn(SOUND, name) || typeof value !== 'string' || !SOUND[name as TransactionField](value))
      return false
  }
  for (const name of NEEDED_FIELDS) if (given[name] === undefined) return false
  const line = given as Transaction
  return hasItsSign(line) && !OWN_TEXTS.some(field => holdsMasked(line[field], line.masked_card))
}

const NEEDED: ReadonlySet<string> = new Set(NEEDED_FIELDS)

/**
 * The places of the lines in columns that aren't plain. If a column has one value for all lines, its rule runs once.
 */
export function notPlainIn(columns: TransactionColumns): Set<number> {
  const found = new Set<number>()
  for (const name of TEXT_FIELDS) {
    const isSound = SOUND[name]
    mark(columns, columns[name], value => (value === '' ? !NEEDED.has(name) : isSound(value)), found)
  }
  markSigns(columns, found)
  markMasked(columns, found)
  return found
}

/** Adds the places of the lines whose value isn't good to `found`. */
export function mark(
  { line }: TransactionColumns,
  column: readonly string[],
  isGood: (value: string) => boolean,
  found: Set<number>,
): void {
  let last: string | undefined
  let wasGood = true
  for (const [at, value] of column.entries()) {
    if (value !== last) wasGood = isGood(value)
    last = value
    if (wasGood) continue
    if (column.length === line.length) found.add(at)
    else for (const every of line.keys()) found.add(every)
  }
}

function markSigns({ line, type, amount }: TransactionColumns, found: Set<number>): void {
  for (let at = 0; at < line.length; at += 1) {
    if (found.has(at)) continue
    if (!hasItsSign({ type: valueAt(type, at) as TransactionType, amount: valueAt(amount, at) })) found.add(at)
  }
}

function markMasked(columns: TransactionColumns, found: Set<number>): void {
  const { line, masked_card: masked } = columns
  for (const name of OWN_TEXTS) {
    const texts = columns[name]
    if (!texts.some(couldHoldNumber)) continue
    for (let at = 0; at < line.length; at += 1)
      if (!found.has(at) && holdsMasked(valueAt(texts, at), valueAt(masked, at) || undefined)) found.add(at)
  }
}
