// Compares well-formed lines of a chunk with the ledger: inserts new lines, and compares those that exist. It also
// makes the outcome of a refused line; transaction-batch.ts decides which lines are refused and why.
import type { RecordOutcome } from '../src/job/chunk-outcomes.ts'
import type { Outcome } from '../src/job/outcome.ts'
import { Transaction, type TransactionLine } from '../src/job/transaction-batch.ts'
import type { StoredTransaction } from '../src/store/ledger/transactions.ts'
import * as transactions from '../src/store/ledger/transactions.ts'
import type { Db } from '../src/store/pool.ts'

/** A well-formed transaction, and its place in the source. */
export interface Candidate {
  line: number
  row: StoredTransaction
}

/** Writes the new lines. Of several lines with the same uid the first in the chunk is used. */
export async function write(db: Db, candidates: readonly Candidate[]): Promise<RecordOutcome[]> {
  if (candidates.length === 0) return []
  const first = new Map<string, Candidate>()
  for (const candidate of candidates) {
    if (!first.has(candidate.row.transactionUid)) first.set(candidate.row.transactionUid, candidate)
  }
  const rows = [...first.values()].map(({ row }) => row)
  // Always in this order, so that chunks with the same uids wait for each other without a deadlock.
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

/** The outcome of a line that isn't in the ledger. It names the line's uid, if it has one. */
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
