// What is asked about batches, and the answers.
import { z } from 'zod'
import { BATCH_STATES, ON_CONFLICT, ON_EXPIRED, RECORD_KINDS } from '../../../src/job/choices.ts'
import { uuid } from '../../../src/job/envelope/text.ts'
import { OUTCOMES } from '../../../src/job/outcome.ts'

export const BatchId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)

export const BatchQuery = z.strictObject({
  kind: z.enum(RECORD_KINDS).default('token-create').describe('What each record asks for.'),
  token_scope: uuid()
    .optional()
    .describe(
      'Required for token-create, and only there. The batch is its entity’s; a batch without a scope is that of the entity where the caller stands.',
    ),
  // The records of a body have no source times.
  on_conflict: z
    .enum(ON_CONFLICT)
    .exclude(['newest'])
    .optional()
    .describe('A card that the scope knows with other data (update).'),
  on_expired: z.enum(ON_EXPIRED).optional().describe('A card that has expired (import).'),
  dry_run: z.enum(['true', 'false']).optional().describe('Predicts every outcome, and changes nothing.'),
  batch_id: BatchId.optional().describe(
    'Repeats under one id are one batch. Without it: from Idempotency-Key, or fresh.',
  ),
})
export type BatchQuery = z.infer<typeof BatchQuery>

export const Accepted = z.strictObject({
  batch_id: BatchId,
  records: z.int().min(0),
  chunks: z.int().min(0),
  accepted_at: z.iso.datetime(),
})

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
