// `transaction-batch`: works a chunk of transactions as one job. Its transactions are checked in memory, one statement
// per table writes the new ones, and the others are compared with the stored lines. The receipt is the checkpoint. A line
// of the ledger never changes: the same data again are UNCHANGED, other data with the same uid are refused.
import { openCache } from '../src/cache.ts'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { count, countReasons, pack, type RecordOutcome, toResult, unpack } from '../src/job/chunk-outcomes.ts'
import {
  grow,
  lineAt,
  type TransactionColumns,
  type TransactionLine,
  valueAt,
  without,
} from '../src/job/ledger/columns.ts'
import { isPlain, mark, notPlainIn } from '../src/job/ledger/plain.ts'
import { AHEAD_MS_MAX, Transaction } from '../src/job/ledger/transaction.ts'
import type { Outcome } from '../src/job/outcome.ts'
import { parse } from '../src/job/refusal.ts'
import { columnsOf, linesOf, othersOf, type TransactionBatch } from '../src/job/transaction-batch.ts'
import type { Client } from '../src/store/access/clients.ts'
import type { Batch } from '../src/store/batch/batch-row.ts'
import { ensureMonths } from '../src/store/ledger/ledger-months.ts'
import type { StoredColumns, StoredTransaction } from '../src/store/ledger/transactions.ts'
import * as transactions from '../src/store/ledger/transactions.ts'
import type { Db, Store } from '../src/store/pool.ts'
import { holdBatch, joinBatch, pauseOf, takeLast } from './chunk/batch.ts'
import { reasonOf } from './chunk/chunk.ts'
import type { Deps } from './deps.ts'
import type { Handler, Selection, Work } from './work.ts'

interface Prepared {
  batch: Batch
  isProbe: boolean
  /** Outcomes of the lines that aren't compared with the ledger. */
  known: RecordOutcome[]
  candidates: Candidate[]
  /** The other well-formed lines, in columns. */
  plain: TransactionColumns | undefined
}

export const transactionBatch: Handler<TransactionBatch, undefined, Prepared> = {
  pauseOf,
  takeBeside: takeLast,
  digestText: ({ asked }) => asked.ledgerText(),

  async prepare(work, _opened, deps, previous, selection) {
    const { request } = work
    if (work.claims.jti !== `${request.batch_id}-${request.chunk}`) return refuse('field_format', 'body.jti')
    const batch = await batchOf(work, deps.store)
    if (isRefusal(batch)) return batch
    const before = previous?.outcomes ? unpack(previous.outcomes) : []
    const mixed = before.length === 0 ? readColumns(work, batch, deps, selection) : undefined
    const read = mixed ?? readRows(select(work, batch, before, selection), work, batch, deps)
    const times = [...read.candidates.map(({ row }) => row.createdAt), ...(read.plain?.created_at ?? [])]
    await ensureMonths(deps.store, [...new Set(times.map(time => time.slice(0, 7)))])
    return { batch, isProbe: selection.probe !== undefined, ...read }
  },

  async decide(work, { batch, isProbe, known, candidates, plain }) {
    return {
      save: async db => {
        const { batchNo } = batch
        const written = await write(db, { candidates, plain, batchNo })
        const records = [...known, ...written].sort((a, b) => a.line - b.line)
        if (!isProbe) await holdBatch(db, batch, work.request.chunk)
        return {
          recordKind: work.claims.kind,
          batchNo,
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

function batchOf(
  { claims, request, client, acceptedAt }: Work<TransactionBatch>,
  store: Store,
): Promise<Batch | Refusal> {
  const batch = {
    clientId: client.clientId,
    entityId: claims.entity_id,
    batchId: request.batch_id,
    recordKind: 'transaction' as const,
    tokenScope: null,
    // Chunks are cut by bytes as well as by number, so the number isn't part of the batch's layout.
    chunkRecords: 0,
    layout: { record_kind: 'transaction', record_form: columnsOf(request) ? 'columns' : 'rows' },
    acceptedAt,
  }
  return joinBatch(store, batch, request)
}

/**
 * Each line, with its outcome if that is known: from the chunk's receipt, because the batch was cancelled, or because
 * the attempt leaves the line out. A probe gets only its part of the lines.
 */
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

type Read = Pick<Prepared, 'known' | 'candidates' | 'plain'>

/** Reads lines one by one; a line with an outcome keeps it. */
function readRows(
  lines: Iterable<{ record: TransactionLine; given?: RecordOutcome }>,
  { client, now }: Work<TransactionBatch>,
  { batchNo }: Batch,
  { inspect }: Pick<Deps, 'inspect'>,
): Read {
  const known: RecordOutcome[] = []
  const candidates: Candidate[] = []
  for (const { record, given } of lines) {
    if (given) {
      known.push(given)
      continue
    }
    const { merchant_reference: reference } = record.transaction
    inspect?.({ line: record.line, reference: typeof reference === 'string' ? reference : undefined })
    const read = readLine(record, client, batchNo, now)
    if ('row' in read) candidates.push(read)
    else known.push(read)
  }
  return { known, candidates, plain: undefined }
}

/**
 * Reads a chunk whose request has columns. Plain lines stay in columns, and every other line is read by itself.
 * Undefined for a chunk that is read line by line: one without columns, a part of a chunk, a chunk with lines that the
 * attempt leaves out, a chunk of a cancelled batch, or one whose line numbers don't grow, because outcomes are sorted
 * by them.
 */
function readColumns(
  work: Work<TransactionBatch>,
  batch: Batch,
  deps: Pick<Deps, 'inspect'>,
  { skipped, probe }: Selection,
): Read | undefined {
  const { request, client, now } = work
  const columns = columnsOf(request)
  if (!columns || probe || skipped.size > 0 || batch.cancelledAt !== null) return undefined
  if (!grow(columns, othersOf(request))) return undefined
  const apart = notPlainIn(columns)
  mark(columns, columns.entity_uid, uid => client.entities.includes(uid), apart)
  mark(columns, columns.created_at, time => !isAhead(time, now), apart)
  const lines = [...apart].map(at => lineAt(columns, at))
  const others = [...lines, ...othersOf(request)].map(record => ({ record }))
  const plain = without(columns, apart)
  for (const [at, line] of plain.line.entries())
    deps.inspect?.({ line, reference: valueAt(plain.merchant_reference, at) || undefined })
  return { ...readRows(others, work, batch, deps), plain }
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
  if (isAhead(created_at, now)) return refuse('field_range', 'body.created_at')
  return undefined
}

const isAhead = (time: string, now: number) => Date.parse(time) > now + AHEAD_MS_MAX

/** A well-formed transaction, and its line number in the source. */
interface Candidate {
  line: number
  row: StoredTransaction
}

/** The well-formed lines of a chunk, and the batch that it belongs to. */
interface WellFormed {
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
async function write(db: Db, chunk: WellFormed): Promise<RecordOutcome[]> {
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

function tookEffect(line: number, outcome: Outcome): RecordOutcome {
  return { line, reference: undefined, outcome, reason: undefined, field: undefined, token: undefined }
}

const UID = Transaction.shape.transaction_uid

/** The outcome of a line that wasn't stored. It names the line's uid, if it has one. */
function refused(
  line: number,
  { transaction }: Pick<TransactionLine, 'transaction'>,
  outcome: Outcome,
  reason: NonNullable<RecordOutcome['reason']>,
  field?: string,
): RecordOutcome {
  const reference = UID.safeParse(transaction['transaction_uid']).data
  return { line, reference, outcome, reason, field, token: undefined }
}
