// The state of a batch: one pure function of its row and the time, the same for the command, over HTTP and for whoever
// else shows it. Who changes the row, and when, is batches.ts.

export const BATCH_STATES = ['CANCELLED', 'FINISHED', 'PAUSED', 'ABANDONED', 'STALLED', 'OPEN', 'RUNNING'] as const
export type BatchState = (typeof BATCH_STATES)[number]

export const BATCH_LIFE = {
  /** Without a chunk for so long: no envelope of it can still be valid. */
  abandonedMs: 8 * 86_400_000,
  /** Without an answer for so long, while rows are outstanding. */
  stalledMs: 60_000,
} as const

/** What of a batch's row its state follows from. Times are ms since the epoch. */
export interface BatchLife {
  /** `null`: no chunk has said how many there will be. */
  extentChunks: number | null
  /** The sender's own stop, after so many chunks. */
  limitChunks: number | null
  chunksDone: number
  pausedAt: number | null
  cancelledAt: number | null
  finishedAt: number | null
  activeAt: number
}

/** The first that holds counts, in the order of BATCH_STATES. */
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

/** What was summed of a batch's chunks. */
export interface Sums {
  chunks: number
  failed: number
}

/**
 * What a sum changes: `ignore` one that receipts are missing from already, or that says nothing new; `finish` where all chunks
 * are there; `revise` where rows of a finished batch that had failed have come to something else.
 */
export function judgeSums(
  row: Pick<BatchLife, 'extentChunks' | 'chunksDone' | 'cancelledAt' | 'finishedAt'> & { failed: number },
  { chunks, failed }: Sums,
): 'ignore' | 'progress' | 'finish' | 'revise' {
  if (chunks < row.chunksDone) return 'ignore'
  if (row.finishedAt !== null) return chunks === row.extentChunks && failed < row.failed ? 'revise' : 'ignore'
  return row.cancelledAt === null && chunks === row.extentChunks ? 'finish' : 'progress'
}
