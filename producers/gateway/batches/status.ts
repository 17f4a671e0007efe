// The state of a batch, as the routes and the progress events show it.
import { z } from 'zod'
import { RECORD_KINDS } from '../../../src/job/catalogue.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'
import { BATCH_STATES, type BatchLife, stateOf } from '../../../src/store/batch/batch-state.ts'
import type { Intake } from '../../../src/store/batch/intake.ts'
import { BatchId } from './query.ts'

export const SHOWN_STATES = ['ACCEPTED', ...BATCH_STATES.filter(state => state !== 'OPEN')] as const
export const STATES_TEXT = [
  '`ACCEPTED`: stored.',
  '`RUNNING`: some chunks are done.',
  '`STALLED`: no chunk was done for a minute, though some are left.',
  '`PAUSED`: the operator lets nothing of it start for now.',
  '`ABANDONED`: no chunk was done for 8 days.',
  '`FINISHED`: all chunks are done.',
  '`CANCELLED`: records that had not started will not start.',
].join(' ')

const count = () => z.int().min(0)

export const BatchStatus = z.strictObject({
  batch_id: BatchId,
  kind: z.enum([...RECORD_KINDS, 'transaction']),
  token_scope: z.guid().optional(),
  dry_run: z.boolean(),
  state: z.enum(SHOWN_STATES).describe(STATES_TEXT),
  finished: z
    .boolean()
    .describe('Whether every record has its outcome. The results of a batch that came over HTTP can be read then.'),
  progress: z.number().min(0).max(1),
  records: count().optional(),
  records_done: count(),
  chunks: count().optional(),
  chunks_done: count(),
  counts: z
    .strictObject(Object.fromEntries(OUTCOMES.map(outcome => [outcome, count()])))
    .describe('Number of records by outcome.'),
  accepted_at: z.iso.datetime(),
  finished_at: z.iso.datetime().optional(),
})
export type BatchStatus = z.infer<typeof BatchStatus>

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
