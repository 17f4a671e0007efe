// Lines of a chunk that have their form, against the ledger as it is: what is new is written, what stands is compared.
// How a refused line is told is here, too; whose line may be refused for what is transaction-batch.ts's.
import type { RecordOutcome } from '../src/job/chunk-outcomes.ts'
import type { Outcome } from '../src/job/outcome.ts'
import { Transaction, type TransactionLine } from '../src/job/transaction-batch.ts'
import type { StoredTransaction } from '../src/store/ledger/transactions.ts'
import * as transactions from '../src/store/ledger/transactions.ts'
import type { Db } from '../src/store/pool.ts'

/** A transaction that has its form, and where it came from. */
export interface Candidate {
  line: number
  row: StoredTransaction
}

/** Writes what is new; of several lines with one uid the first of the chunk stands. */
export async function write(db: Db, candidates: readonly Candidate[]): Promise<RecordOutcome[]> {
  if (candidates.length === 0) return []
  const first = new Map<string, Candidate>()
  for (const candidate of candidates) {
    if (!first.has(candidate.row.transactionUid)) first.set(candidate.row.transactionUid, candidate)
  }
  const rows = [...first.values()].map(({ row }) => row)
  // In this order always: chunks that overlap wait for one another and never in a circle.
  const ordered = rows.toSorted((a, b) => (a.transactionUid < b.transactionUid ? -1 : 1))
  const claimed = await transactions.claim(db, ordered)
  const isClaimed = claimed.size === rows.length
  await transactions.insertAll(db, isClaimed ? rows : rows.filter(row => claimed.has(row.transactionUid)))
  const isNew = (candidate: Candidate) =>
    claimed.has(candidate.row.transactionUid) && first.get(candidate.row.transactionUid) === candidate
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

function tookEffect(line: number, outcome: Outcome): RecordOutcome {
  return { line, reference: undefined, outcome, reason: undefined, field: undefined, token: undefined }
}

const UID = Transaction.shape.transaction_uid

/** A line that isn't in the ledger names its uid, where it has one. */
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
