// What an operator does to a batch. Each act decides under the lock of the batch's row, where its end is decided too: of
// two that exclude each other one wins.
import type { Batch } from '../store/batch/batch-row.ts'
import { stateOf } from '../store/batch/batch-state.ts'
import * as batches from '../store/batch/batches.ts'
import type { Db, Store } from '../store/pool.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'

export type BatchRefusal = 'finished' | 'cancelled' | 'paused' | 'not_paused' | 'at_limit'

export interface Cancelled {
  batch: Batch
  /** Rows that won't be done; undefined where nobody said how many there are. */
  rowsLeft: number | undefined
}

/** Nothing of it begins once this has returned; what was done stays done. */
export function cancelBatch(
  store: Store,
  { batchNo, batchId }: Batch,
  by: By,
): Promise<ActResult<Cancelled, BatchRefusal>> {
  // Its chunks may all be there, though nobody has summed them yet: then it is finished.
  return perform(store, { action: 'batch.cancel', subject: batchId }, by, async db =>
    cancelLocked(db, await batches.settle(db, batchNo)),
  )
}

/** The same, of a locked row, where more is to be cancelled in its transaction. */
export async function cancelLocked(db: Db, row: Batch): Promise<Decided<Cancelled, BatchRefusal>> {
  const refused = ended(row)
  if (refused) return { refused }
  const batch = await batches.cancel(db, row.batchNo)
  const rowsLeft = rowsLeftOf(row)
  return { done: { batch, rowsLeft }, detail: { client_id: batch.clientId, rows_left: rowsLeft ?? null } }
}

/** Chunks of it are put back until it is resumed; those that are being worked end. */
export function pauseBatch(store: Store, batch: Batch, by: By): Promise<ActResult<Batch, BatchRefusal>> {
  return perform(store, { action: 'batch.pause', subject: batch.batchId }, by, async db => {
    const row = await batches.lock(db, batch.batchNo)
    const refused = ended(row) ?? (row.pausedAt === null ? undefined : 'paused')
    if (refused) return { refused }
    return { done: await batches.pause(db, row.batchNo), detail: { client_id: row.clientId } }
  })
}

/** A batch that its sender stopped by `--limit` goes on with the sender's next run, and not by this. */
export function resumeBatch(store: Store, batch: Batch, by: By, now: number): Promise<ActResult<Batch, BatchRefusal>> {
  return perform(store, { action: 'batch.resume', subject: batch.batchId }, by, async db => {
    const row = await batches.lock(db, batch.batchNo)
    const isAtLimit = row.pausedAt === null && stateOf(row, now) === 'PAUSED'
    const refused = ended(row) ?? (row.pausedAt !== null ? undefined : isAtLimit ? 'at_limit' : 'not_paused')
    if (refused) return { refused }
    return { done: await batches.resume(db, row.batchNo), detail: { client_id: row.clientId } }
  })
}

function ended({ cancelledAt, finishedAt }: Batch): 'finished' | 'cancelled' | undefined {
  if (cancelledAt !== null) return 'cancelled'
  return finishedAt === null ? undefined : 'finished'
}

function rowsLeftOf({ extent, rowsDone }: Pick<Batch, 'extent' | 'rowsDone'>): number | undefined {
  return extent?.rows == null ? undefined : Math.max(0, extent.rows - rowsDone)
}
