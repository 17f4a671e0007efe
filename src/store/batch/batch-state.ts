// The state of a batch: one pure function of its row and the time. Commands, HTTP answers and pages all use it.
// batches.ts changes the row.

import type { BatchState } from '../../job/choices.ts'

export const BATCH_LIFE = {
  /**
   * A batch that isn't cancelled, finished or paused is abandoned after this time without an answered chunk: none of
   * its envelopes can still be valid.
   */
  abandonedMs: 8 * 86_400_000,
  /** A batch with outstanding rows and no answered chunk for this long is stalled. */
  stalledMs: 60_000,
} as const

/** The columns of a batch's row that determine its state. Times are ms since the epoch. */
export interface BatchLife {
  /** `null`: no chunk has given the number of chunks. */
  extentChunks: number | null
  /** The sender stops after this many chunks for now (`--limit`). */
  limitChunks: number | null
  chunksDone: number
  pausedAt: number | null
  cancelledAt: number | null
  finishedAt: number | null
  activeAt: number
}

/** The state at the time `now`. The first state of BATCH_STATES whose condition holds is returned. */
export function stateOf(batch: BatchLife, now: number): BatchState {
  const { extentChunks, limitChunks, chunksDone, activeAt } = batch
  const isAtLimit = limitChunks !== null && chunksDone >= limitChunks
  if (batch.cancelledAt !== null) return 'CANCELLED'
  if (batch.finishedAt !== null) return 'FINISHED'
  if (batch.pausedAt !== null || isAtLimit) return 'PAUSED'
  if (now - activeAt >= BATCH_LIFE.abandonedMs) return 'ABANDONED'
  if (extentChunks !== null && chunksDone < extentChunks && now - activeAt >= BATCH_LIFE.stalledMs) return 'STALLED'
  return extentChunks === null ? 'OPEN' : 'RUNNING'
}

/** What a point of a batch's chart says of the time after it. */
export const SAMPLED_STATES = ['RUNNING', 'PAUSED', 'STALLED'] as const
export type SampledState = (typeof SAMPLED_STATES)[number]

/** That state as the row tells it. A stall comes by time alone, so it isn't among these. */
export function sampledStateOf({ pausedAt, limitChunks, chunksDone }: BatchLife): Exclude<SampledState, 'STALLED'> {
  return pausedAt !== null || (limitChunks !== null && chunksDone >= limitChunks) ? 'PAUSED' : 'RUNNING'
}

/** The sums over a batch's chunks that `judgeSums` needs. */
export interface Sums {
  chunks: number
  failed: number
}

/**
 * Decides how new sums change a batch. `ignore`: receipts are already missing, or the batch is finished and not fewer
 * of its records are failed. `finish`: all chunks are answered. `revise`: the batch was finished, and fewer of its
 * records are failed now. `progress`: anything else.
 */
export function judgeSums(
  row: Pick<BatchLife, 'extentChunks' | 'chunksDone' | 'cancelledAt' | 'finishedAt'> & { failed: number },
  { chunks, failed }: Sums,
): 'ignore' | 'progress' | 'finish' | 'revise' {
  if (chunks < row.chunksDone) return 'ignore'
  if (row.finishedAt !== null) return chunks === row.extentChunks && failed < row.failed ? 'revise' : 'ignore'
  return row.cancelledAt === null && chunks === row.extentChunks ? 'finish' : 'progress'
}

/**
 * What a person saw of a batch when deciding about it: who acted on it and whether it has ended, with the time of its pause
 * (ms since the epoch). It leaves out what time alone changes, such as STALLED, and the rows that are done meanwhile. An act is
 * refused if this differs when a worker does it.
 */
export function seenOf({ extentChunks, limitChunks, chunksDone, ...batch }: BatchLife): string {
  if (batch.cancelledAt !== null) return 'CANCELLED'
  if (batch.finishedAt !== null) return 'FINISHED'
  if (batch.pausedAt !== null) return `PAUSED ${batch.pausedAt}`
  if (limitChunks !== null && chunksDone >= limitChunks) return 'PAUSED'
  return extentChunks === null ? 'OPEN' : 'RUNNING'
}
