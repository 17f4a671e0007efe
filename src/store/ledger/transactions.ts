// The ledger: transaction lines, which are written once and never changed. The columns that reports query are named
// here.
import type { TransactionType } from '../../job/transaction-batch.ts'
import { bigints, dates, texts, timestamps, uuidBytes, uuids } from '../binary.ts'
import { type Column, rowSet } from '../columns.ts'
import type { Db } from '../pool.ts'

/** A line of the ledger as the store holds it. */
export interface StoredTransaction {
  transactionUid: string
  entityUid: string
  merchantReference: string | null
  type: TransactionType
  brand: string | null
  maskedCard: string | null
  tokenReference: string | null
  /** ISO 4217. */
  currency: string
  /** Minor units. The net amount is amount - fee - commission. */
  amount: bigint
  fee: bigint
  commission: bigint
  /** RFC 3339 in UTC, up to microseconds. */
  createdAt: string
  settledAt: string | null
  clearingDate: string | null
  clearingMerchant: string | null
  bankAccount: string | null
  clearingReference: string | null
  settlementBatch: string | null
  /** The batch that the line came with. */
  batchNo: number
}

/** Columns of `tokenmill.transaction` that a report may read, in the order of the table. */
const TRANSACTION_COLUMNS = [
  'transaction_uid',
  'entity_uid',
  'merchant_reference',
  'type',
  'brand',
  'masked_card',
  'token_reference',
  'currency',
  'amount',
  'fee',
  'commission',
  'created_at',
  'settled_at',
  'clearing_date',
  'clearing_merchant',
  'bank_account',
  'clearing_reference',
  'settlement_batch',
  'batch_no',
  'recorded_at',
] as const

type Texts = readonly (string | null)[]
/** How the server gets a column whose values differ. */
const ARRAYS = {
  uuid: (all: Texts) => uuids(uuidBytes(all as readonly string[])),
  text: texts,
  bigint: bigints,
  timestamptz: timestamps,
  date: dates,
} as const

const column = (
  name: (typeof TRANSACTION_COLUMNS)[number],
  type: keyof typeof ARRAYS,
  text: Column<StoredTransaction>['text'],
): Column<StoredTransaction> => ({ name, type, text, plain: false, array: ARRAYS[type] })

/** The columns of a line's content, without those about its batch and receipt. */
const SAID: readonly Column<StoredTransaction>[] = [
  column('transaction_uid', 'uuid', t => t.transactionUid),
  column('entity_uid', 'uuid', t => t.entityUid),
  column('merchant_reference', 'text', t => t.merchantReference),
  column('type', 'text', t => t.type),
  column('brand', 'text', t => t.brand),
  column('masked_card', 'text', t => t.maskedCard),
  column('token_reference', 'text', t => t.tokenReference),
  column('currency', 'text', t => t.currency),
  column('amount', 'bigint', t => String(t.amount)),
  column('fee', 'bigint', t => String(t.fee)),
  column('commission', 'bigint', t => String(t.commission)),
  column('created_at', 'timestamptz', t => t.createdAt),
  column('settled_at', 'timestamptz', t => t.settledAt),
  column('clearing_date', 'date', t => t.clearingDate),
  column('clearing_merchant', 'text', t => t.clearingMerchant),
  column('bank_account', 'text', t => t.bankAccount),
  column('clearing_reference', 'text', t => t.clearingReference),
  column('settlement_batch', 'text', t => t.settlementBatch),
]
const COLUMNS = [...SAID, column('batch_no', 'bigint', t => String(t.batchNo))]
const namesOf = (columns: typeof SAID, prefix = '') => columns.map(({ name }) => prefix + name).join(', ')

const UIDS = COLUMNS.filter(({ name }) => name === 'transaction_uid' || name === 'created_at')

/**
 * Claims the uids of these lines; each uid must occur once. It goes in the order of the uids and waits for other
 * transactions that claim one of them. Returns the uids that were free.
 */
export async function claim(db: Db, lines: readonly StoredTransaction[]): Promise<Set<string>> {
  const { shape, source, values } = rowSet(UIDS, lines)
  const { rows } = await db.query<{ transaction_uid: string }>({
    name: `ledger-claim-${shape}`,
    text: `insert into tokenmill.ledger_uid (${namesOf(UIDS)}) select ${namesOf(UIDS)} from ${source}
on conflict on constraint transaction_uid_stands_once do nothing returning transaction_uid`,
    values,
  })
  return new Set(rows.map(row => row.transaction_uid))
}

/** Inserts lines whose uids were claimed in this transaction. */
export async function insertAll(db: Db, lines: readonly StoredTransaction[]): Promise<void> {
  if (lines.length === 0) return
  const { shape, source, values } = rowSet(COLUMNS, lines)
  await db.query({
    name: `ledger-insert-${shape}`,
    text: `insert into tokenmill.transaction (${namesOf(COLUMNS)}) select ${namesOf(COLUMNS)} from ${source}`,
    values,
  })
}

interface Numbered extends StoredTransaction {
  n: number
}
const NUMBERED: readonly Column<Numbered>[] = [{ name: 'n', type: 'integer', text: t => t.n, plain: true }, ...SAID]

/** The indexes of those lines that exist already with the same values in every column. */
export async function findSame(db: Db, lines: readonly StoredTransaction[]): Promise<Set<number>> {
  if (lines.length === 0) return new Set()
  const { shape, source, values } = rowSet(
    NUMBERED,
    lines.map((line, n) => ({ ...line, n })),
  )
  const { rows } = await db.query<{ n: number }>({
    name: `ledger-same-${shape}`,
    text: `select v.n from ${source} cross join lateral (
  select ${namesOf(SAID)} from tokenmill.transaction as stored
  where stored.entity_uid = v.entity_uid and stored.created_at = v.created_at and stored.transaction_uid = v.transaction_uid limit 1
) as t where (${namesOf(SAID, 't.')}) is not distinct from (${namesOf(SAID, 'v.')})`,
    values,
  })
  return new Set(rows.map(row => row.n))
}
