// `transaction-batch`: a chunk of the ledger walks the line as one job. Its transactions are checked in memory, and one
// statement per table writes the new ones. The receipt is the checkpoint. A line of the ledger never changes: the same
// data again are UNCHANGED, other data with the same uid are refused.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { count, countReasons, pack, type RecordOutcome, toResult, unpack } from '../src/job/chunk-outcomes.ts'
import { ledgerText } from '../src/job/envelope/digest.ts'
import { parse } from '../src/job/refusal.ts'
import {
  AHEAD_MS_MAX,
  isPlain,
  linesOf,
  Transaction,
  type TransactionBatch,
  type TransactionLine,
} from '../src/job/transaction-batch.ts'
import type { Client } from '../src/store/access/clients.ts'
import type { Batch } from '../src/store/batch/batch-row.ts'
import { ensureMonths } from '../src/store/ledger/ledger-months.ts'
import type { StoredTransaction } from '../src/store/ledger/transactions.ts'
import type { Store } from '../src/store/pool.ts'
import { holdBatch, joinBatch, pauseOf, takeLast } from './chunk/batch.ts'
import { reasonOf } from './chunk/chunk.ts'
import type { Handler, Selection, Work } from './line/work.ts'
import { type Candidate, refused, write } from './transaction-batch-write.ts'

interface Prepared {
  batch: Batch
  isProbe: boolean
  /** Outcomes that are known before any row is read. */
  known: RecordOutcome[]
  candidates: Candidate[]
}

export const transactionBatch: Handler<TransactionBatch, undefined, Prepared> = {
  pauseOf,
  takeBeside: takeLast,
  digestText: work => ledgerText(work.claims.request),

  async prepare(work, _opened, deps, previous, selection) {
    const { request, client } = work
    if (work.claims.jti !== `${request.batch_id}-${request.chunk}`) return refuse('field_format', 'body.jti')
    const batch = await batchOf(work, deps.store)
    if (isRefusal(batch)) return batch
    const before = previous?.outcomes ? unpack(previous.outcomes) : []
    const known: RecordOutcome[] = []
    const candidates: Candidate[] = []
    for (const { record, given } of select(work, batch, before, selection)) {
      if (given) known.push(given)
      else {
        const { merchant_reference: reference } = record.transaction
        deps.inspect?.({ line: record.line, reference: typeof reference === 'string' ? reference : undefined })
        const read = readLine(record, client, batch.batchNo, work.now)
        if ('row' in read) candidates.push(read)
        else known.push(read)
      }
    }
    const months = new Set(candidates.map(({ row }) => row.createdAt.slice(0, 7)))
    await ensureMonths(deps.store, [...months])
    return { batch, isProbe: selection.probe !== undefined, known, candidates }
  },

  async decide(work, { batch, isProbe, known, candidates }) {
    return {
      save: async db => {
        const records = [...known, ...(await write(db, candidates))].sort((a, b) => a.line - b.line)
        if (!isProbe) await holdBatch(db, batch, work.request.chunk)
        return {
          recordKind: work.claims.kind,
          batchNo: batch.batchNo,
          chunk: work.request.chunk,
          counts: count(records),
          reasons: countReasons(records),
          records: records.map(toResult),
          packed: pack(records),
          dryRun: false,
        }
      },
    }
  },
}

function batchOf({ request, client, acceptedAt }: Work<TransactionBatch>, store: Store): Promise<Batch | Refusal> {
  const batch = {
    clientId: client.clientId,
    batchId: request.batch_id,
    recordKind: 'transaction' as const,
    tokenScope: null,
    // Chunks are cut by bytes as well as by number, so the number isn't part of the batch's layout.
    chunkRecords: 0,
    layout: { record_kind: 'transaction' },
    acceptedAt,
  }
  return joinBatch(store, batch, request)
}

/** Each line, with its outcome if that is known: from an earlier run, or because the attempt leaves it out. */
function* select(
  { request }: Work<TransactionBatch>,
  batch: Batch,
  before: ReturnType<typeof unpack>,
  { skipped, probe }: Selection,
): Generator<{ record: TransactionLine; given?: RecordOutcome }> {
  const decided = new Map(before.filter(({ outcome }) => outcome !== 'FAILED').map(found => [found.line, found]))
  for (const [index, record] of linesOf(request).entries()) {
    if (probe && (index < probe.from || index >= probe.to)) continue
    const past = decided.get(record.line)
    if (past) yield { record, given: { ...past, claimed: undefined, token: undefined } }
    else if (batch.cancelledAt !== null) yield { record, given: refused(record.line, record, 'CANCELLED', 'cancelled') }
    else if (skipped.has(index)) yield { record, given: refused(record.line, record, 'FAILED', 'internal') }
    else yield { record }
  }
}

function readLine(record: TransactionLine, client: Client, batchNo: number, now: number): Candidate | RecordOutcome {
  const { line } = record
  const { transaction } = record
  const parsed = isPlain(transaction) ? { value: transaction } : parse(Transaction, transaction, 'body')
  const refusal = isRefusal(parsed) ? parsed : judge(parsed.value, client, now)
  if (refusal) {
    const { reason, field } = reasonOf(refusal)
    return refused(line, record, 'REJECTED', reason, field)
  }
  return { line, row: rowOf((parsed as { value: Transaction }).value, batchNo) }
}

function judge({ entity_uid, created_at }: Transaction, client: Client, now: number): Refusal | undefined {
  if (!client.entities.includes(entity_uid)) return refuse('entity_forbidden', 'body.entity_uid')
  if (Date.parse(created_at) > now + AHEAD_MS_MAX) return refuse('field_range', 'body.created_at')
  return undefined
}

function rowOf(given: Transaction, batchNo: number): StoredTransaction {
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
