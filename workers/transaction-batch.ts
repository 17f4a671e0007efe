// `transaction-batch`: works a chunk of transactions as one job. Its transactions are checked in memory, and one
// statement per table writes the new ones. The receipt is the checkpoint. A line of the ledger never changes: the same
// data again are UNCHANGED, other data with the same uid are refused.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { count, countReasons, pack, type RecordOutcome, toResult, unpack } from '../src/job/chunk-outcomes.ts'
import { ledgerText } from '../src/job/envelope/digest.ts'
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
import { parse } from '../src/job/refusal.ts'
import { columnsOf, linesOf, othersOf, type TransactionBatch } from '../src/job/transaction-batch.ts'
import type { Client } from '../src/store/access/clients.ts'
import type { Batch } from '../src/store/batch/batch-row.ts'
import { ensureMonths } from '../src/store/ledger/ledger-months.ts'
import type { Store } from '../src/store/pool.ts'
import { holdBatch, joinBatch, pauseOf, takeLast } from './chunk/batch.ts'
import { reasonOf } from './chunk/chunk.ts'
import type { Deps } from './deps.ts'
import { type Candidate, refused, rowOf, write } from './transaction-batch-write.ts'
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
  digestText: work => ledgerText(work.claims.request),

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
