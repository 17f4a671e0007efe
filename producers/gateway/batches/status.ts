// The state of a batch as its routes and events tell it.
import { z } from 'zod'
import { RECORD_KINDS } from '../../../src/job/catalogue.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'
import type { Intake } from '../../../src/store/batch/intake.ts'
import { BatchId } from './query.ts'

const count = () => z.int().min(0)

export const BatchStatus = z.strictObject({
  batch_id: BatchId,
  kind: z.enum(RECORD_KINDS),
  token_scope: z.guid().optional(),
  dry_run: z.boolean(),
  state: z
    .enum(['ACCEPTED', 'RUNNING', 'FINISHED', 'CANCELLED'])
    .describe(
      '`ACCEPTED`: stored. `RUNNING`: some chunks are done. `FINISHED`: all are. `CANCELLED`: records that had not started will not start.',
    ),
  finished: z.boolean().describe('Whether every record has its outcome, so that the results can be read.'),
  progress: z.number().min(0).max(1),
  records: count(),
  records_done: count(),
  chunks: count(),
  chunks_done: count(),
  counts: z
    .strictObject(Object.fromEntries(OUTCOMES.map(outcome => [outcome, count()])))
    .describe('Number of records by outcome.'),
  accepted_at: z.iso.datetime(),
  finished_at: z.iso.datetime().optional(),
})
export type BatchStatus = z.infer<typeof BatchStatus>

/** `cancelled`: the command cancelled the batch, which speaks to the workers only. */
export function statusOf(intake: Intake, cancelled: boolean): BatchStatus {
  const { chunks, chunksDone, finishedAt, counts } = intake
  return {
    batch_id: intake.batchId,
    kind: intake.recordKind,
    ...(intake.tokenScope !== null && { token_scope: intake.tokenScope }),
    dry_run: intake.dryRun,
    state: stateOf(intake, cancelled),
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

function stateOf({ state, finishedAt, chunksDone }: Intake, cancelled: boolean): BatchStatus['state'] {
  if (state === 'CANCELLED' || cancelled) return 'CANCELLED'
  if (finishedAt !== null) return 'FINISHED'
  return chunksDone > 0 ? 'RUNNING' : 'ACCEPTED'
}
