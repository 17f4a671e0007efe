// The state of a batch, as the routes and the progress events show it.
import { OUTCOMES } from '../../../src/job/outcome.ts'
import { type BatchLife, stateOf } from '../../../src/store/batch/batch-state.ts'
import type { Intake } from '../../../src/store/batch/intake.ts'
import type { BatchStatus } from '../../http/messages/batches.ts'

export function statusOf(intake: Intake, now: number): BatchStatus {
  const { chunks, chunksDone, finishedAt, counts } = intake
  return {
    batch_id: intake.batchId,
    kind: intake.recordKind,
    ...(intake.tokenScope !== null && { token_scope: intake.tokenScope }),
    dry_run: intake.dryRun,
    state: shownState(lifeOf(intake, now), now),
    finished: finishedAt !== null,
    progress: chunks === 0 ? 0 : chunksDone / chunks,
    records: intake.records,
    records_done: OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0),
    chunks,
    chunks_done: chunksDone,
    counts,
    accepted_at: new Date(intake.acceptedAt).toISOString(),
    ...(finishedAt !== null && { finished_at: new Date(finishedAt).toISOString() }),
  }
}

/**
 * The times of a batch that determine its state. A dry run has no row of the workers, so it is never paused and never
 * stalls.
 */
function lifeOf(intake: Intake, now: number): BatchLife {
  const { batch, state, chunks, chunksDone, finishedAt, acceptedAt } = intake
  return {
    extentChunks: chunks,
    limitChunks: null,
    chunksDone,
    pausedAt: batch?.pausedAt ?? null,
    cancelledAt: state === 'CANCELLED' ? acceptedAt : (batch?.cancelledAt ?? null),
    // A batch counts as finished when its results can be read: when the end of every chunk is recorded here, a moment
    // after the last chunk was done.
    finishedAt,
    activeAt: batch?.activeAt ?? now,
  }
}

/** The shown state. A running batch of which nothing is done, or that may still grow, is shown as ACCEPTED. */
export function shownState(life: BatchLife, now: number): BatchStatus['state'] {
  const state = stateOf(life, now)
  return state === 'OPEN' || (state === 'RUNNING' && life.chunksDone === 0) ? 'ACCEPTED' : state
}
