// What an operator does to a batch. Each act locks the batch's row before it decides. The end of a batch is decided
// under the same lock, so of two acts that exclude each other only the first succeeds.
import type { Batch } from '../store/batch/batch-row.ts'
import { stateOf } from '../store/batch/batch-state.ts'
import * as batches from '../store/batch/batches.ts'
import type { Coder } from '../store/codes.ts'
import type { Db, Store } from '../store/pool.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'

export type BatchRefusal = 'finished' | 'cancelled' | 'paused' | 'not_paused' | 'at_limit'

export interface Cancelled {
  batch: Batch
  /** Rows of the batch that will not be processed. Undefined if the sender never said how many rows there are. */
  rowsLeft: number | undefined
}

/** Cancels a batch: after this returns no further chunk takes effect. Records that are done stay done. */
export function cancelBatch(
  store: Store,
  { batchNo, batchId }: Batch,
  by: By,
): Promise<ActResult<Cancelled, BatchRefusal>> {
  // All chunks may be answered without being in the sum yet. `settle` sums them; if all are answered, the batch has
  // finished, and workers tell it.
  return perform(store, { action: 'batch.cancel', subject: batchId }, by, async db =>
    cancelLocked(db, await batches.settle(db, undefined, batchNo)),
  )
}

/** Cancels a batch whose row the caller has locked, so that the caller can cancel more in the same transaction. */
export async function cancelLocked(db: Db, row: Batch): Promise<Decided<Cancelled, BatchRefusal>> {
  const { entityId } = row
  const refused = ended(row)
  if (refused) return { refused, entityId }
  const batch = await batches.cancel(db, row.batchNo)
  const rowsLeft = rowsLeftOf(row)
  return { done: { batch, rowsLeft }, detail: { client_id: batch.clientId, rows_left: rowsLeft ?? null }, entityId }
}

/**
 * Pauses a batch: workers put its chunks back on the queue until it is resumed. A chunk that is being worked is put
 * back, too, unless it was committed before.
 */
export function pauseBatch(store: Store, batch: Batch, by: By): Promise<ActResult<Batch, BatchRefusal>> {
  return perform(store, { action: 'batch.pause', subject: batch.batchId }, by, async db =>
    pauseLocked(db, await batches.lock(db, batch.batchNo)),
  )
}

async function pauseLocked(db: Db, row: Batch): Promise<Decided<Batch, BatchRefusal>> {
  const { entityId } = row
  const refused = ended(row) ?? (row.pausedAt === null ? undefined : 'paused')
  if (refused) return { refused, entityId }
  return { done: await batches.pause(db, row.batchNo), detail: { client_id: row.clientId }, entityId }
}

/**
 * Resumes a batch that an operator paused. Refuses a batch that stopped at its sender's `--limit` (`at_limit`): that
 * batch goes on when the sender runs again.
 */
export function resumeBatch(store: Store, batch: Batch, by: By, now: number): Promise<ActResult<Batch, BatchRefusal>> {
  return perform(store, { action: 'batch.resume', subject: batch.batchId }, by, async db =>
    resumeLocked(db, await batches.lock(db, batch.batchNo), now),
  )
}

async function resumeLocked(db: Db, row: Batch, now: number): Promise<Decided<Batch, BatchRefusal>> {
  const isAtLimit = row.pausedAt === null && stateOf(row, now) === 'PAUSED'
  const refused = ended(row) ?? (row.pausedAt !== null ? undefined : isAtLimit ? 'at_limit' : 'not_paused')
  const { entityId } = row
  if (refused) return { refused, entityId }
  return { done: await batches.resume(db, row.batchNo), detail: { client_id: row.clientId }, entityId }
}

/** Writes a note on a batch: the reason is the note. It changes nothing else, so it is possible in every state. */
export function noteBatch(store: Store, batch: Batch, by: By): Promise<ActResult<Batch, BatchRefusal>> {
  return perform(store, { action: 'batch.note', subject: batch.batchId }, by, async db =>
    noteLocked(db, await batches.lock(db, batch.batchNo)),
  )
}

async function noteLocked(_db: Db, row: Batch): Promise<Decided<Batch, never>> {
  return { done: row, detail: { client_id: row.clientId }, entityId: row.entityId }
}

/** An act on a batch for a caller that has begun the transaction. */
export interface BatchAct {
  /** Locks the row for the act. */
  lock(db: Db, batchNo: number, coder: Coder): Promise<Batch>
  decide(db: Db, row: Batch, now: number): Promise<Decided<unknown, BatchRefusal>>
}

/** The same acts by name: a worker has one for each row of src/job/system/batch-act.ts. */
export const BATCH_DEEDS = {
  'batch.pause': { lock: batches.lock, decide: pauseLocked },
  'batch.resume': { lock: batches.lock, decide: resumeLocked },
  'batch.cancel': {
    lock: (db: Db, batchNo: number, coder: Coder) => batches.settle(db, coder, batchNo),
    decide: cancelLocked,
  },
  'batch.note': { lock: batches.lock, decide: noteLocked },
} as const satisfies Record<string, BatchAct>

function ended({ cancelledAt, finishedAt }: Batch): 'finished' | 'cancelled' | undefined {
  if (cancelledAt !== null) return 'cancelled'
  return finishedAt === null ? undefined : 'finished'
}

function rowsLeftOf({ extent, rowsDone }: Pick<Batch, 'extent' | 'rowsDone'>): number | undefined {
  return extent?.rows == null ? undefined : Math.max(0, extent.rows - rowsDone)
}
