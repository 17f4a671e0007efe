// The ledger: transaction lines, which are written once and never changed. The columns that reports query are named
// here.
import { TEXT_FIELDS, type TextField, type TransactionColumns } from '../../job/ledger/columns.ts'
import type { TransactionType } from '../../job/ledger/transaction.ts'
import { bigints, compareAt, dates, orderOf, pick, texts, timestamps, uuidBytes, uuids } from '../binary.ts'
import { type Cells, type Column, cellSet, rowSet, whole } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'

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
/** How a column whose values differ is written for the server, by the type of the column. */
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

/** The columns that the sender gave: all but the batch and the time of recording. */
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

/** Lines in columns. A column of texts may have one value, which then counts for all lines. */
export interface StoredColumns {
  count: number
  /** The 16 bytes of each uid. */
  uids: Buffer
  texts: Readonly<Record<TextField, readonly (string | null)[]>>
  batchNo: number
}

const textsOf = (make: (name: TextField) => readonly (string | null)[]) =>
  Object.fromEntries(TEXT_FIELDS.map(name => [name, make(name)])) as unknown as StoredColumns['texts']

/** The columns of a chunk, all lines of which are well-formed. */
export function columnsOf(given: TransactionColumns, batchNo: number): StoredColumns {
  return {
    count: given.line.length,
    uids: Buffer.from(given.transaction_uid, 'hex'),
    texts: textsOf(name => (given[name].includes('') ? given[name].map(value => value || null) : given[name])),
    batchNo,
  }
}

const TEXTS = new Map(SAID.map(({ name, text }) => [name, text as (row: StoredTransaction) => string | null]))

/** The columns of rows, all of one batch. */
export function columnsOfRows(rows: readonly StoredTransaction[], batchNo: number): StoredColumns {
  return {
    count: rows.length,
    uids: uuidBytes(rows.map(({ transactionUid }) => transactionUid)),
    texts: textsOf(name => rows.map(TEXTS.get(name) ?? (() => null))),
    batchNo,
  }
}

/** The lines of both, which are of one batch. */
export function joined(one: StoredColumns, other: StoredColumns): StoredColumns {
  if (one.count === 0 || other.count === 0) return one.count === 0 ? other : one
  return {
    count: one.count + other.count,
    uids: Buffer.concat([one.uids, other.uids]),
    texts: textsOf(name => [...whole(one.texts[name], one.count), ...whole(other.texts[name], other.count)]),
    batchNo: one.batchNo,
  }
}

/** The places of the lines in the order of their uids; undefined if a uid is there twice. */
export function orderOfUids({ uids }: StoredColumns): number[] | undefined {
  const order = orderOf(uids)
  return order.some((place, index) => index > 0 && compareAt(uids, place, order[index - 1] ?? 0) === 0)
    ? undefined
    : order
}

/** The uids of lines with their times, in an order: the places of the lines. */
function uidRows({ count, uids, texts: { created_at: times } }: StoredColumns, order: readonly number[]) {
  const ordered = whole(times, count)
  const cells = [uuids(pick(uids, order)), times.length === 1 ? times : order.map(place => ordered[place] ?? null)]
  return cellSet(UIDS, cells, count)
}

/**
 * Claims the uids of lines and inserts the lines, if every uid is free. Returns false if one is taken; then nothing is
 * written. `order` and waiting are as for `claim`, which takes PostgreSQL half as long again, because it must undo a
 * row that lost a race.
 */
export async function insertNew(db: Db, lines: StoredColumns, order: readonly number[]): Promise<boolean> {
  const { shape, rows, values } = uidRows(lines, order)
  const [, claimed, inserted] = await Promise.allSettled([
    db.query({ text: 'savepoint before_lines' }),
    db.query({
      name: `ledger-new-${shape}`,
      text: `insert into tokenmill.ledger_uid (${namesOf(UIDS)}) ${rows}`,
      values,
    }),
    // Sent without waiting: it fails if the uids can't be claimed.
    insertAll(db, lines),
  ])
  if (claimed.status === 'rejected' && claimed.reason instanceof LostRace) {
    await db.query({ text: 'rollback to savepoint before_lines' })
    return false
  }
  for (const each of [claimed, inserted]) if (each.status === 'rejected') throw each.reason
  return true
}

/**
 * Claims the uids of lines. `order`: the places of the lines, in the order of their uids. Waits for other transactions
 * that claim one of them. Returns the uids that were free, or `all` if every uid was.
 */
export async function claim(
  db: Db,
  lines: StoredColumns,
  order: readonly number[],
): Promise<ReadonlySet<string> | 'all'> {
  const { shape, rows: uids, values } = uidRows(lines, order)
  const { rows } = await db.query<{ free: string | null }>({
    name: `ledger-claim-${shape}`,
    text: `with claimed as (
  insert into tokenmill.ledger_uid (${namesOf(UIDS)}) ${uids}
  on conflict on constraint transaction_uid_stands_once do nothing
  returning transaction_uid
)
select case when count(*) < $${
      values.length + 1
    }::bigint then coalesce(array_agg(transaction_uid), '{}')::text end as free
from claimed`,
    values: [...values, String(lines.count)],
  })
  const free = rows[0]?.free ?? null
  return free === null ? 'all' : new Set(free.slice(1, -1).split(','))
}

/** Inserts lines whose uids were claimed in this transaction. */
export async function insertAll(db: Db, { count, uids, texts: cells, batchNo }: StoredColumns): Promise<void> {
  if (count === 0) return
  const all: Cells[] = [uuids(uids), ...TEXT_FIELDS.map(name => cells[name]), [String(batchNo)]]
  const { shape, rows, values } = cellSet(COLUMNS, all, count)
  await db.query({
    name: `ledger-insert-${shape}`,
    text: `insert into tokenmill.transaction (${namesOf(COLUMNS)}) ${rows}`,
    values,
  })
}

interface Numbered extends StoredTransaction {
  n: number
}
const NUMBERED: readonly Column<Numbered>[] = [{ name: 'n', type: 'integer', text: t => t.n, plain: true }, ...SAID]

/** The indexes of those lines that the ledger has with the same values in every column that the sender gave. */
export async function findSame(db: Db, lines: readonly StoredTransaction[]): Promise<Set<number>> {
  if (lines.length === 0) return new Set()
  const { shape, source, values } = rowSet(
    NUMBERED,
    lines.map((line, n) => ({ ...line, n })),
  )
  const { rows } = await db.query<{ n: number }>({
    name: `ledger-same-${shape}`,
    text: `select v.n
from ${source}
cross join lateral (
  select ${namesOf(SAID)}
  from tokenmill.transaction as stored
  where stored.entity_uid = v.entity_uid and stored.created_at = v.created_at and stored.transaction_uid = v.transaction_uid
  limit 1
) as t
where (${namesOf(SAID, 't.')}) is not distinct from (${namesOf(SAID, 'v.')})`,
    values,
  })
  return new Set(rows.map(row => row.n))
}
