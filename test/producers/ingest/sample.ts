// Transactions for tests and benches: made from a number, so that each run has the same.
import { createHash } from 'node:crypto'
import { AMOUNT_SIGNS, TRANSACTION_TYPES } from '../../../src/job/ledger/transaction.ts'

export interface SampleOptions {
  entity: string
  /** Changes every uid. */
  seed?: string
  /** The time of the first transaction, and over how many days they are spread. */
  from?: string
  days?: number
}

/** A UUID that follows from its name. */
export function uidOf(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

const CURRENCIES = ['EUR', 'JPY', 'KWD', 'CLF'] as const
export const EXPONENTS = { EUR: 2, JPY: 0, KWD: 3, CLF: 4 } as const

/** Transaction `index`, as a `transaction-batch` takes it. */
export function transactionOf(
  index: number,
  { entity, seed = 'sample', from = '2026-01-01', days = 60 }: SampleOptions,
) {
  const type = TRANSACTION_TYPES[index % TRANSACTION_TYPES.length] ?? 'SALE'
  const { least, most } = AMOUNT_SIGNS[type]
  const sign = most === 1 ? 1 : least
  const createdAt = Date.parse(`${from}T00:00:00Z`) + ((index * 7_919) % (days * 86_400)) * 1000
  const day = new Date(createdAt + 86_400_000).toISOString().slice(0, 10)
  return {
    transaction_uid: uidOf(`${seed}-${index}`),
    entity_uid: entity,
    merchant_reference: `order-${index}`,
    type,
    brand: index % 2 === 0 ? 'VISA' : 'MASTERCARD',
    masked_card: '411111******1111',
    token_reference: 't01ARZ3NDEKTSV4RRFFQ69G5FAV',
    currency: CURRENCIES[index % CURRENCIES.length] ?? 'EUR',
    amount: String(sign * (1 + ((index * 104_729) % 1_000_000))),
    fee: String((index * 31) % 500),
    commission: String((index * 17) % 300),
    created_at: new Date(createdAt).toISOString().replace('.000Z', 'Z'),
    settled_at: `${day}T06:00:00Z`,
    clearing_date: day,
    clearing_merchant: 'M-1234567',
    bank_account: 'DE89370400440532013000',
    clearing_reference: `CLR-${day}`,
    settlement_batch: `B-${day}`,
  }
}

export type SampleTransaction = ReturnType<typeof transactionOf>

/** The transaction as a row of CSV with its amounts in major units, under `CSV_HEADER`. */
export function csvRowOf(transaction: SampleTransaction): string {
  const exponent = EXPONENTS[transaction.currency as keyof typeof EXPONENTS]
  const major = (minor: string) => {
    const digits = minor.replace('-', '').padStart(exponent + 1, '0')
    const cut = digits.length - exponent
    const decimals = exponent === 0 ? '' : `.${digits.slice(cut)}`
    return `${minor.startsWith('-') ? '-' : ''}${digits.slice(0, cut)}${decimals}`
  }
  const { amount, fee, commission } = transaction
  const given = { ...transaction, amount: major(amount), fee: major(fee), commission: major(commission) }
  return Object.values(given).join(',')
}

export const CSV_HEADER = Object.keys(transactionOf(0, { entity: '' })).join(',')
