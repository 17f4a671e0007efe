// Batches: each has one row, which its first chunk makes and which says all its life long what it is, how far it has come,
// and whether it may go on. Chunks only read the row, or they would wait for one another; what they came to is summed into it
// by whoever has the time. Reading rows for people is batch-list.ts.
import { agree, type KnownExtent } from '../../job/envelope/batch-extent.ts'
import type * as events from '../event/events.ts'
import { tell } from '../event/tell.ts'
import type { Db, Store } from '../pool.ts'
import { BATCH_COLUMNS, type Batch, type BatchRow, batchOf } from './batch-row.ts'
import { judgeSums, stateOf } from './batch-state.ts'
import { type BatchSums, sumChunks } from './batch-sums.ts'

export async function find(db: Db, clientId: string, batchId: string): Promise<Batch | undefined> {
  const { rows } = await db.query<BatchRow>({
    name: 'batch-find',
    text: `select ${BATCH_COLUMNS} from tokenmill.batch where client_id = $1 and batch_id = $2`,
    values: [clientId, batchId],
  })
  const row = rows[0]
  return row && batchOf(row)
}

export type NewBatch = Pick<
  Batch,
  'clientId' | 'batchId' | 'recordKind' | 'tokenScope' | 'chunkRecords' | 'layout' | 'acceptedAt'
> & { extent?: KnownExtent | undefined; limitChunks?: number | undefined }

/** The batch, made now if this is its first chunk. */
export async function open(db: Db, batch: NewBatch): Promise<Batch> {
  const known = await find(db, batch.clientId, batch.batchId)
  if (known) return known
  const { extent } = batch
  await db.query({
    text: `insert into tokenmill.batch (client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at,
  extent_chunks, extent_rows, source_name, source_sha256, limit_chunks)
values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9, $10, $11, $12) on conflict on constraint batch_id_stands_once_per_client do nothing`,
    values: [
      batch.clientId,
      batch.batchId,
      batch.recordKind,
      batch.tokenScope,
      batch.chunkRecords,
      JSON.stringify(batch.layout),
      new Date(batch.acceptedAt),
      extent?.chunks,
      extent?.rows,
      extent?.name,
      extent?.sha256,
      batch.limitChunks,
    ],
  })
  const made = await find(db, batch.clientId, batch.batchId)
  if (!made) throw new Error('broken law: a batch that was opened is found')
  return made
}

/** The first extent stands. Undefined where another one stands already, or a chunk beyond this one was done. */
export function setExtent(store: Store, batchNo: number, extent: KnownExtent): Promise<Batch | undefined> {
  return store.transaction(async db => {
    // Chunks that are being saved hold the row until their commit: none beyond the extent can slip through.
    const row = await lock(db, batchNo)
    if (row.extent) return agree(row.extent, extent) ? row : undefined
    const { count: beyond } = await db.query({
      text: 'select from tokenmill.receipt where batch_no = $1 and chunk >= $2 limit 1',
      values: [batchNo, extent.chunks],
    })
    if (beyond > 0) return undefined
    return change(db, batchNo, 'extent_chunks = $2, extent_rows = $3, source_name = $4, source_sha256 = $5', [
      extent.chunks,
      extent.rows,
      extent.name,
      extent.sha256,
    ])
  })
}

/** `null`: the sender means to send all of it. */
export async function setLimit(db: Db, batchNo: number, limitChunks: number | null): Promise<Batch> {
  return change(db, batchNo, 'limit_chunks = $2', [limitChunks])
}

/** The row as it will stay until the transaction ends: read just before the commit, so that nobody waits for long. */
export async function holdShared(db: Db, batchNo: number): Promise<Batch> {
  return one(db, 'batch-share', `select ${BATCH_COLUMNS} from tokenmill.batch where batch_no = $1 for share`, [batchNo])
}

/** The row, which nobody else changes until the transaction ends; chunks that are being saved are waited for. */
export function lock(db: Db, batchNo: number): Promise<Batch> {
  const text = `select ${BATCH_COLUMNS} from tokenmill.batch where batch_no = $1 for no key update`
  return one(db, 'batch-lock', text, [batchNo])
}

/** Under the row's lock: chunks that were not yet started will be answered as cancelled. */
export function cancel(db: Db, batchNo: number): Promise<Batch> {
  // Workers of release 0.4 read the state.
  return change(db, batchNo, `state = 'CANCELLED', cancelled_at = now()`)
}

/** Under the row's lock: its chunks are put back until it is resumed. */
export function pause(db: Db, batchNo: number): Promise<Batch> {
  return change(db, batchNo, 'paused_at = now()')
}

/** Under the row's lock. Its silence is counted from now on. */
export function resume(db: Db, batchNo: number): Promise<Batch> {
  return change(db, batchNo, 'paused_at = null, active_at = now()')
}

const SUM_MS_MIN = 1_000

/**
 * Sums what a batch's chunks have come to into its row, at most once a second. A batch whose chunks are all there is finished
 * in the same transaction that writes its totals and its event. `later`: it was summed just now. `finished`: the batch, where
 * that finished it for the first time.
 */
export function sum(store: Store, batchNo: number): Promise<'later' | { finished: Batch | undefined }> {
  return store.transaction(async db => {
    await holdSums(db, batchNo)
    const { count: isDue } = await db.query({
      text: `select from tokenmill.batch where batch_no = $1
  and (chunks_done = 0 or summed_at <= clock_timestamp() - make_interval(secs => $2 / 1000.0))`,
      values: [batchNo, SUM_MS_MIN],
    })
    if (isDue === 0) return 'later'
    // A long sum is made before the row is locked: chunks wait for that lock.
    const sums = await sumChunks(db, batchNo)
    const before = await lock(db, batchNo)
    const after = await write(db, before, sums)
    return { finished: before.revision === 0 && after.revision === 1 ? after : undefined }
  })
}

/** The row as its chunks have left it, locked until the transaction ends: no chunk is committed meanwhile. */
export async function settle(db: Db, batchNo: number): Promise<Batch> {
  await holdSums(db, batchNo)
  const row = await lock(db, batchNo)
  return write(db, row, await sumChunks(db, batchNo))
}

/** One sum at a time: of two, the later one is written last. */
async function holdSums(db: Db, batchNo: number): Promise<void> {
  await db.query({
    text: `select pg_advisory_xact_lock(hashtextextended('tokenmill batch sums', $1))`,
    values: [batchNo],
  })
}

async function write(db: Db, row: Batch, sums: BatchSums): Promise<Batch> {
  const known = { ...row, failed: row.counts.FAILED }
  const verdict = judgeSums(known, { chunks: sums.chunks, failed: sums.counts.FAILED })
  if (verdict === 'ignore') return change(db, row.batchNo, 'summed_at = clock_timestamp()')
  const isFinished = verdict !== 'progress'
  const written = await change(
    db,
    row.batchNo,
    `chunks_done = $2, rows_done = $3, counts = $4::jsonb, reasons = $5::jsonb, active_at = greatest(active_at, $6::timestamptz),
summed_at = clock_timestamp(), revision = $7, finished_at = case when $8 then coalesce(finished_at, now()) end`,
    [
      sums.chunks,
      sums.rows,
      JSON.stringify(sums.counts),
      JSON.stringify(sums.reasons),
      sums.lastAt === null ? null : new Date(sums.lastAt),
      isFinished ? row.revision + 1 : row.revision,
      isFinished,
    ],
  )
  if (isFinished) await tell(db, finishedEvent(written))
  return written
}

/** Tells of a stall, once: what stands still after a chunk was answered is a further one. `now`: ms since the epoch. */
export function noteStall(store: Store, batchNo: number, now: number): Promise<boolean> {
  return store.transaction(async db => {
    const row = await lock(db, batchNo)
    if (!isUntoldStall(row, now)) return false
    const written = await change(db, batchNo, 'stalls = stalls + 1, stalled_at = greatest(now(), active_at)')
    await tell(db, stalledEvent(written))
    return true
  })
}

export function isUntoldStall(row: Batch, now: number): boolean {
  return stateOf(row, now) === 'STALLED' && (row.stalledAt === null || row.stalledAt < row.activeAt)
}

function stalledEvent(batch: Batch): events.Event {
  const { clientId, batchId, recordKind, extent, chunksDone, rowsDone, activeAt, stalls } = batch
  return {
    type: 'batch.stalled',
    clientId,
    subject: batchId,
    revision: stalls,
    data: {
      batch_id: batchId,
      kind: recordKind,
      revision: stalls,
      chunks: chunksDone,
      chunks_expected: extent?.chunks ?? null,
      rows: rowsDone,
      rows_expected: extent?.rows ?? null,
      active_at: new Date(activeAt).toISOString(),
    },
  }
}

function finishedEvent(batch: Batch): events.Event {
  const { clientId, batchId, recordKind, revision, rowsDone, counts, reasons, finishedAt } = batch
  return {
    type: 'batch.finished',
    clientId,
    subject: batchId,
    revision,
    data: {
      batch_id: batchId,
      kind: recordKind,
      revision,
      chunks: batch.chunksDone,
      rows: rowsDone,
      counts,
      reasons,
      finished_at: finishedAt === null ? null : new Date(finishedAt).toISOString(),
    },
  }
}

async function change(db: Db, batchNo: number, set: string, values: readonly unknown[] = []): Promise<Batch> {
  return one(db, undefined, `update tokenmill.batch set ${set} where batch_no = $1 returning ${BATCH_COLUMNS}`, [
    batchNo,
    ...values,
  ])
}

async function one(db: Db, name: string | undefined, text: string, values: unknown[]): Promise<Batch> {
  const { rows } = await db.query<BatchRow>({ ...(name ? { name } : {}), text, values })
  const row = rows[0]
  if (!row) throw new Error('broken law: a batch is never removed')
  return batchOf(row)
}
