// Batches. Each has one row, which its first chunk inserts; it holds what the batch is, its progress, and whether it
// may go on. Other chunks only read the row, unless they set its extent or limit; if they wrote to it, they would wait
// for one another. Their outcomes are summed into the row later. Lists for people are in batch-list.ts.
import { agree, type KnownExtent } from '../../job/envelope/batch-extent.ts'
import type { Coder } from '../codes.ts'
import { plains } from '../columns.ts'
import type * as events from '../event/events.ts'
import { tell } from '../event/tell.ts'
import type { Db, Store } from '../pool.ts'
import { BATCH_COLUMNS, type Batch, type BatchRow, batchOf } from './batch-row.ts'
import * as batchSamples from './batch-samples.ts'
import { BATCH_LIFE, judgeSums, type SampledState, sampledStateOf, stateOf } from './batch-state.ts'
import { type BatchSums, sumChunks, sumProved } from './batch-sums.ts'

export async function find(db: Db, clientId: string, batchId: string): Promise<Batch | undefined> {
  const { rows } = await db.query<BatchRow>({
    name: 'batch-find',
    text: `select ${BATCH_COLUMNS}
from tokenmill.batch
where client_id = $1 and batch_id = $2`,
    values: [clientId, batchId],
  })
  return rows[0] && batchOf(rows[0])
}

/** Those of these numbers that are batches of this client, over a file with this digest and with this policy. */
export async function findOfFile(
  db: Db,
  batchNos: readonly number[],
  { clientId, sha256, onConflict }: { clientId: string; sha256: string; onConflict: unknown },
): Promise<ReadonlySet<number>> {
  const { rows } = await db.query<Pick<Batch, 'batchNo'>>({
    name: 'batches-of-file',
    text: `select batch_no as "batchNo"
from tokenmill.batch
where batch_no = any($1::bigint[]) and client_id = $2 and source_sha256 = $3 and layout->>'on_conflict' = $4`,
    values: [plains(batchNos), clientId, sha256, onConflict],
  })
  return new Set(rows.map(({ batchNo }) => batchNo))
}

export type NewBatch = Pick<
  Batch,
  'clientId' | 'batchId' | 'entityId' | 'recordKind' | 'tokenScope' | 'chunkRecords' | 'layout' | 'acceptedAt'
> & { extent?: KnownExtent | undefined; limitChunks?: number | undefined }

/** The batch of a chunk. The first chunk inserts it. */
export async function open(db: Db, batch: NewBatch): Promise<Batch> {
  const known = await find(db, batch.clientId, batch.batchId)
  if (known) return known
  const { extent } = batch
  await db.query({
    text: `insert into tokenmill.batch (
  client_id,
  batch_id,
  record_kind,
  token_scope,
  chunk_records,
  layout,
  accepted_at,
  extent_chunks,
  extent_rows,
  source_name,
  source_sha256,
  limit_chunks,
  entity_id
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  $6::jsonb,
  $7,
  $8,
  $9,
  $10,
  $11,
  $12,
  $13
)
on conflict on constraint batch_id_stands_once_per_client do nothing`,
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
      batch.entityId,
    ],
  })
  const made = await find(db, batch.clientId, batch.batchId)
  if (!made) throw new Error('broken law: a batch that was opened is found')
  return made
}

/**
 * Sets a batch's extent, once. Undefined if another extent is set already, or if a chunk beyond this extent was done.
 */
export function setExtent(store: Store, batchNo: number, extent: KnownExtent): Promise<Batch | undefined> {
  return store.transaction(async db => {
    // Chunks that are being saved hold the row until their commit, so no chunk beyond the extent can be saved unseen.
    const row = await lock(db, batchNo)
    if (row.extent) return agree(row.extent, extent) ? row : undefined
    const { count: beyond } = await db.query({
      text: `select
from tokenmill.receipt
where batch_no = $1 and chunk >= $2
limit 1`,
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

/** Sets after how many chunks the sender stops. `null`: the sender will send all of them. */
export async function setLimit(db: Db, batchNo: number, limitChunks: number | null): Promise<Batch> {
  const sampledAt = 'case when chunks_done >= limit_chunks then null else sampled_at end'
  return change(db, batchNo, `limit_chunks = $2, sampled_at = ${sampledAt}`, [limitChunks])
}

/** Makes the batch one of no entity, for good: its chunks are of several. */
export async function dropEntity(db: Db, batchNo: number): Promise<Batch> {
  return change(db, batchNo, 'entity_id = null')
}

const SELECT_ONE = `select ${BATCH_COLUMNS}
from tokenmill.batch
where batch_no = $1`

/**
 * Reads the row with a shared lock until the transaction ends. Call it just before the commit, so that other
 * transactions don't wait for long.
 */
export async function holdShared(db: Db, batchNo: number): Promise<Batch> {
  return one(db, 'batch-share', `${SELECT_ONE} for share`, [batchNo])
}

/** Reads and locks the row until the transaction ends. Waits for chunks that are being saved. */
export function lock(db: Db, batchNo: number): Promise<Batch> {
  return one(db, 'batch-lock', `${SELECT_ONE} for no key update`, [batchNo])
}

/** Cancels the batch; the caller has locked the row. Chunks that haven't begun will be answered as cancelled. */
export function cancel(db: Db, batchNo: number): Promise<Batch> {
  return change(db, batchNo, 'cancelled_at = now()')
}

/** Pauses the batch; the caller has locked the row. Workers put its chunks back on the queue until it is resumed. */
export async function pause(db: Db, batchNo: number): Promise<Batch> {
  return sample(db, await change(db, batchNo, 'paused_at = now(), sampled_at = clock_timestamp()'))
}

/** Resumes the batch; the caller has locked the row. The time without an answer is counted anew from now. */
export async function resume(db: Db, batchNo: number): Promise<Batch> {
  return sample(db, await change(db, batchNo, 'paused_at = null, active_at = now(), sampled_at = clock_timestamp()'))
}

const SUM_MS_MIN = 1_000

/**
 * Sums the outcomes of a batch's chunks into its row: at most once a second, after the first chunk is in the sum. If
 * all chunks are answered, the same transaction finishes the batch: it writes totals and event. Returns `later` if the
 * last sum is less than a second ago; `unproved`: ids of receipts that tokenmill didn't write as they are, because of which the
 * batch can't end; else `finished`: the batch, if this call finished it for the first time.
 */
export function sum(
  store: Store,
  coder: Coder,
  batchNo: number,
): Promise<'later' | { unproved: string[] } | { finished: Batch | undefined }> {
  return store.transaction(async db => {
    await holdSums(db, batchNo)
    const { count: isDue } = await db.query({
      text: `select
  from tokenmill.batch
  where batch_no = $1
  and (chunks_done = 0 or summed_at <= clock_timestamp() - make_interval(secs => $2 / 1000.0))`,
      values: [batchNo, SUM_MS_MIN],
    })
    if (isDue === 0) return 'later'
    // Adding up the receipts may take long, so it is done before the batch's row is locked: chunks wait for that lock.
    const sums = await sumChunks(db, batchNo)
    const isEnd = endsBy(await one(db, 'batch-read', SELECT_ONE, [batchNo]), sums)
    const proved = isEnd ? await sumProved(db, coder, batchNo) : undefined
    const before = await lock(db, batchNo)
    if (proved && 'unproved' in proved) {
      await change(db, batchNo, 'summed_at = clock_timestamp()')
      return proved
    }
    const after = await write(db, proved && coder, before, proved ?? sums)
    return { finished: before.revision === 0 && after.revision === 1 ? after : undefined }
  })
}

/**
 * Sums the batch and returns its row, locked until the transaction ends: no chunk is committed meanwhile. `coder` undefined: this
 * process has no key of the vault. If all chunks are answered, it leaves the end of the batch, and its event, to `sum`.
 */
export async function settle(db: Db, coder: Coder | undefined, batchNo: number): Promise<Batch> {
  await holdSums(db, batchNo)
  const row = await lock(db, batchNo)
  const sums = await sumChunks(db, batchNo)
  const proved = coder && endsBy(row, sums) ? await sumProved(db, coder, batchNo) : undefined
  return proved && !('unproved' in proved) ? write(db, coder, row, proved) : write(db, undefined, row, sums)
}

function verdictOf(row: Batch, { chunks, counts }: BatchSums): ReturnType<typeof judgeSums> {
  return judgeSums({ ...row, failed: row.counts.FAILED }, { chunks, failed: counts.FAILED })
}

/** Whether these sums end the batch, or end it anew, which is told. */
function endsBy(row: Batch, sums: BatchSums): boolean {
  return ['finish', 'revise'].includes(verdictOf(row, sums))
}

/** Only one sum of a batch runs at a time, so that an older sum never replaces a newer one. */
async function holdSums(db: Db, batchNo: number): Promise<void> {
  await db.query({
    text: `select pg_advisory_xact_lock(hashtextextended('tokenmill batch sums', $1))`,
    values: [batchNo],
  })
}

/** `coder` undefined: what would end the batch isn't written. */
async function write(db: Db, coder: Coder | undefined, row: Batch, sums: BatchSums): Promise<Batch> {
  const verdict = verdictOf(row, sums)
  if (verdict === 'ignore') return change(db, row.batchNo, 'summed_at = clock_timestamp()')
  const isFinished = verdict !== 'progress'
  if (isFinished && !coder) return { ...row, finishedAt: sums.lastAt ?? row.activeAt }
  const written = await change(
    db,
    row.batchNo,
    `chunks_done = $2, rows_done = $3, counts = $4::jsonb, reasons = $5::jsonb, active_at = greatest(active_at, $6::timestamptz),
summed_at = clock_timestamp(), revision = $7, finished_at = case when $8 then coalesce(finished_at, now()) end,
sampled_at = case when $8 or ${SAMPLE_IS_DUE} then clock_timestamp() else sampled_at end`,
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
  if (isFinished && coder) await tell(db, coder, finishedEvent(written))
  if (written.sampledAt === row.sampledAt) return written
  if (row.sampledAt === null && row.chunksDone === 0) await batchSamples.begin(db, written)
  return sample(db, written)
}

/**
 * There are new sums, and the least time between two points of a chart has passed, or the batch stops at its sender's limit, or
 * goes on after that or after a stall: then `sampled_at` is null. The update that writes the sums checks it; most sums cost
 * nothing more.
 */
const SAMPLE_IS_DUE = `(rows_done <> $3 and
  coalesce(sampled_at + make_interval(secs => sample_s) <= clock_timestamp() or $2 >= limit_chunks, sampled_at is null))`
const SAMPLE_S_MAX = 86_400

/** Adds a point to the batch's chart; the caller has set `sampled_at`. If points are removed, fewer are added from now on. */
async function sample(db: Db, batch: Batch, state: SampledState = sampledStateOf(batch), at?: number): Promise<Batch> {
  await batchSamples.add(db, batch, state, at)
  if ((await batchSamples.thin(db, batch.batchNo)) === 0) return batch
  return change(db, batch.batchNo, `sample_s = least(sample_s * 2, ${SAMPLE_S_MAX})`)
}

/**
 * Writes the event that a batch stalls, once per stall. After another chunk was answered a further stall counts as new.
 * `now`: ms since the epoch. Returns whether it wrote the event.
 */
export function noteStall(store: Store, coder: Coder, batchNo: number, now: number): Promise<boolean> {
  return store.transaction(async db => {
    const row = await lock(db, batchNo)
    if (!isUntoldStall(row, now)) return false
    const set = 'stalls = stalls + 1, stalled_at = greatest(now(), active_at), sampled_at = null'
    const written = await change(db, batchNo, set)
    await sample(db, written, 'STALLED', row.activeAt + BATCH_LIFE.stalledMs)
    await tell(db, coder, stalledEvent(written))
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
  return one(
    db,
    undefined,
    `update tokenmill.batch
set ${set}
where batch_no = $1
returning ${BATCH_COLUMNS}`,
    [batchNo, ...values],
  )
}

async function one(db: Db, name: string | undefined, text: string, values: unknown[]): Promise<Batch> {
  const { rows } = await db.query<BatchRow>({ ...(name ? { name } : {}), text, values })
  const row = rows[0]
  if (!row) throw new Error('broken law: a batch is never removed')
  return batchOf(row)
}
