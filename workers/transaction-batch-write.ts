// Writes the well-formed lines of a chunk: inserts those whose uid is new, and compares the others with the stored
// lines. It also makes the outcome of a refused line; transaction-batch.ts decides which lines are refused and why.
import { openCache } from '../src/cache.ts'
import type { RecordOutcome } from '../src/job/chunk-outcomes.ts'
import { lineAt, type TransactionColumns, type TransactionLine } from '../src/job/ledger/columns.ts'
import { Transaction } from '../src/job/ledger/transaction.ts'
import type { Outcome } from '../src/job/outcome.ts'
import type { StoredColumns, StoredTransaction } from '../src/store/ledger/transactions.ts'
import * as transactions from '../src/store/ledger/transactions.ts'
import type { Db } from '../src/store/pool.ts'

/** A well-formed transaction, and its line number in the source. */
export interface Candidate {
  line: number
  row: StoredTransaction
}

/** The well-formed lines of a chunk, and the batch that it belongs to. */
export interface WellFormed {
  candidates: readonly Candidate[]
  /** Lines beside the candidates, in columns. */
  plain: TransactionColumns | undefined
  batchNo: number
}

const BATCHES_MAX = 1_000
/**
 * By batch number: true if the last chunk of the batch in this process had a line whose uid was taken. The next is then
 * not tried as a chunk of new lines, because such a try fails with an error in the log of PostgreSQL.
 */
const hasKnown = openCache<boolean>({ max: BATCHES_MAX })

async function insertNew(db: Db, all: StoredColumns, order: readonly number[]): Promise<boolean> {
  return !hasKnown.get(String(all.batchNo)) && (await transactions.insertNew(db, all, order))
}

/**
 * Inserts the lines whose uid is new (CREATED). Any other line is compared with the stored one: UNCHANGED for the same
 * data, else REJECTED. If several lines of the chunk have the same new uid, the first is inserted.
 */
export async function write(db: Db, chunk: WellFormed): Promise<RecordOutcome[]> {
  const { candidates, plain, batchNo } = chunk
  const rows = candidates.map(({ row }) => row)
  const others = transactions.columnsOfRows(rows, batchNo)
  const all = plain ? transactions.joined(transactions.columnsOf(plain, batchNo), others) : others
  if (all.count === 0) return []
  const order = transactions.orderOfUids(all)
  if (!order || !(await insertNew(db, all, order))) {
    const claimed = order && (await transactions.claim(db, all, order))
    hasKnown.set(String(batchNo), claimed !== 'all')
    if (claimed !== 'all') return compare(db, allOf(chunk), batchNo, claimed)
    await transactions.insertAll(db, all)
  }
  const lines = [...(plain?.line ?? []), ...candidates.map(({ line }) => line)]
  return lines.map(line => tookEffect(line, 'CREATED'))
}

/**
 * All lines as candidates, in the order of the chunk. In a chunk with columns that is the order of the line numbers.
 */
function allOf({ candidates, plain, batchNo }: WellFormed): readonly Candidate[] {
  if (!plain) return candidates
  const inColumns = plain.line.map((line, at) => {
    // The columns were checked by the rules of the schema.
    return { line, row: rowOf(lineAt(plain, at).transaction as Transaction, batchNo) }
  })
  return [...inColumns, ...candidates].sort((a, b) => a.line - b.line)
}

/** `claimed`: the uids that were free, if the caller has claimed them. In that case no two lines have the same uid. */
async function compare(
  db: Db,
  candidates: readonly Candidate[],
  batchNo: number,
  claimed?: ReadonlySet<string>,
): Promise<RecordOutcome[]> {
  const first = new Map<string, Candidate>()
  for (const candidate of candidates) {
    if (!first.has(candidate.row.transactionUid)) first.set(candidate.row.transactionUid, candidate)
  }
  const rows = [...first.values()].map(({ row }) => row)
  const free = claimed ?? (await claimRows(db, rows, batchNo))
  const fresh = rows.filter(row => free === 'all' || free.has(row.transactionUid))
  await transactions.insertAll(db, transactions.columnsOfRows(fresh, batchNo))
  const isNew = (candidate: Candidate) =>
    (free === 'all' || free.has(candidate.row.transactionUid)) && first.get(candidate.row.transactionUid) === candidate
  const others = candidates.filter(candidate => !isNew(candidate))
  const found = await transactions.findSame(
    db,
    others.map(({ row }) => row),
  )
  const same = new Set(others.filter((_, index) => found.has(index)))
  return candidates.map((candidate): RecordOutcome => {
    const { line, row } = candidate
    if (isNew(candidate)) return tookEffect(line, 'CREATED')
    if (same.has(candidate)) return tookEffect(line, 'UNCHANGED')
    return refused(line, { transaction: { transaction_uid: row.transactionUid } }, 'REJECTED', 'transaction_conflict')
  })
}

function claimRows(db: Db, rows: readonly StoredTransaction[], batchNo: number): Promise<ReadonlySet<string> | 'all'> {
  const all = transactions.columnsOfRows(rows, batchNo)
  return transactions.claim(db, all, transactions.orderOfUids(all) ?? [])
}

export function rowOf(given: Transaction, batchNo: number): StoredTransaction {
  return {
    transactionUid: given.transaction_uid,
    entityUid: given.entity_uid,
    merchantReference: given.merchant_reference ?? null,
    type: given.type,
    brand: given.brand ?? null,
    maskedCard: given.masked_card ?? null,
    tokenReference: given.token_reference ?? null,
    currency: given.currency,
    amount: BigInt(given.amount),
    fee: BigInt(given.fee),
    commission: BigInt(given.commission),
    createdAt: given.created_at,
    settledAt: given.settled_at ?? null,
    clearingDate: given.clearing_date ?? null,
    clearingMerchant: given.clearing_merchant ?? null,
    bankAccount: given.bank_account ?? null,
    clearingReference: given.clearing_reference ?? null,
    settlementBatch: given.settlement_batch ?? null,
    batchNo,
  }
}

function tookEffect(line: number, outcome: Outcome): RecordOutcome {
  return { line, reference: undefined, outcome, reason: undefined, field: undefined, token: undefined }
}

const UID = Transaction.shape.transaction_uid

/** The outcome of a line that wasn't stored. It names the line's uid, if it has one. */
export function refused(
  line: number,
  { transaction }: Pick<TransactionLine, 'transaction'>,
  outcome: Outcome,
  reason: NonNullable<RecordOutcome['reason']>,
  field?: string,
): RecordOutcome {
  const reference = UID.safeParse(transaction['transaction_uid']).data
  return { line, reference, outcome, reason, field, token: undefined }
}
