// Finds the batches of a total, and refuses those of which no total can be computed.
import { setTimeout as pause } from 'node:timers/promises'
import type { BatchState } from '../../src/job/choices.ts'
import { tookEffect } from '../../src/job/outcome.ts'
import { findById } from '../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import { stateOf } from '../../src/store/batch/batch-state.ts'
import { sumChunks } from '../../src/store/batch/batch-sums.ts'
import type { Db } from '../../src/store/pool.ts'
import { ALL } from '../../src/store/sight.ts'
import { FileError } from '../rows/file-error.ts'

/** A batch is summed some seconds after its last chunk: how long to wait for the sum. */
const SUMMED_MS = 60_000
const LOOK_MS = 250
const ENDED: readonly BatchState[] = ['FINISHED', 'CANCELLED', 'ABANDONED']

export interface FoundBatches {
  /** In the order that was asked for; each once. */
  batches: Batch[]
  /** How many of their rows took effect. */
  rows: number
}

export async function findBatches(
  db: Db,
  { batches, clientId }: { batches: readonly string[]; clientId?: string | undefined },
  signal?: AbortSignal,
): Promise<FoundBatches> {
  const ids = [...new Set(batches)]
  if (ids.length === 0) throw new FileError('usage', 'A total is of batches.', 'Name at least one.')
  const found: Batch[] = []
  for (const id of ids) found.push(await untilEnded(db, { id, clientId }, signal))
  let rows = 0
  for (const batch of found) rows += await countRows(db, batch)
  return { batches: found, rows }
}

async function untilEnded(
  db: Db,
  asked: { id: string; clientId?: string | undefined },
  signal: AbortSignal | undefined,
): Promise<Batch> {
  const until = performance.now() + SUMMED_MS
  for (;;) {
    const batch = await findOne(db, asked)
    const state = stateOf(batch, Date.now())
    if (ENDED.includes(state)) return batch
    if (state !== 'RUNNING' || performance.now() > until)
      throw new FileError(
        'input',
        `The batch ${asked.id} is ${state}: its total would change.`,
        'Let it end first; `tokenmill batch show` says what it waits for.',
      )
    await pause(LOOK_MS, undefined, { signal })
  }
}

async function findOne(db: Db, { id, clientId }: { id: string; clientId?: string | undefined }): Promise<Batch> {
  const [batch, ...others] = await findById(ALL, db, { batchId: id, clientId }, WHOLE_BATCH)
  if (!batch) throw new FileError('usage', `There is no batch ${id}.`, '`tokenmill batch list` shows those there are.')
  if (others.length > 0)
    throw new FileError('usage', `Several clients have a batch ${id}.`, 'Give the file of one with --client.')
  if (batch.recordKind !== 'token-create')
    throw new FileError(
      'usage',
      `The records of ${id} are of the kind ${batch.recordKind}: a total is of cards that were migrated.`,
      'Leave this batch out.',
    )
  return batch
}

/**
 * How many rows of the batch took effect. Throws a FileError if receipts of the batch were dropped, as happens after
 * some time: a total over the others would be wrong.
 */
async function countRows(db: Db, { batchNo, batchId, chunksDone }: Batch): Promise<number> {
  const { chunks, counts } = await sumChunks(db, batchNo)
  if (chunks >= chunksDone)
    return Object.entries(counts).reduce((sum, [outcome, count]) => (tookEffect(outcome) ? sum + count : sum), 0)
  throw new FileError(
    'input',
    `Of ${chunksDone} chunks of the batch ${batchId} the store has kept ${chunks}.`,
    'A total is computed soon after the run, before receipts are dropped (TOKENMILL_RECEIPT_DAYS); leave it out.',
  )
}
