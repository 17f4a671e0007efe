// The closed set of outcomes of a batch's record, and their counts.
import { z } from 'zod'
import { REFERENCE_OUTCOMES } from '../token/on-file.ts'

export const OUTCOMES = ['CREATED', 'UPDATED', 'UNCHANGED', 'DUPLICATE', 'REJECTED', 'FAILED', 'CANCELLED'] as const
export type Outcome = (typeof OUTCOMES)[number]

export type Counts = Record<Outcome, number>

export function noCounts(): Counts {
  return { CREATED: 0, UPDATED: 0, UNCHANGED: 0, DUPLICATE: 0, REJECTED: 0, FAILED: 0, CANCELLED: 0 }
}

/** The sum of all counts. */
export function sumOf(counts: Counts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0)
}

/** Whether the token is now as the record, or the batch's policy, wanted it. */
export function tookEffect(outcome: string): boolean {
  return outcome === 'CREATED' || outcome === 'UPDATED' || outcome === 'UNCHANGED' || outcome === 'DUPLICATE'
}

/** One record's outcome in the result of its chunk. */
export const RecordResult = z.object({
  line: z.int(),
  reference: z.string().optional(),
  outcome: z.enum(OUTCOMES),
  /** 200 if the record took effect, else the status that the same request would get over HTTP. */
  code: z.int(),
  reason: z.string().optional(),
  /** The field of the record that the reason is about. */
  field: z.string().optional(),
  /** Which part failed, if only the scheme token failed. */
  failed_facet: z.enum(['token', 'scheme_token']).optional(),
  /** In a dry run: a DUPLICATE that would change the token that an earlier record of its card found or made. */
  changes: z.literal(true).optional(),
  /** What happened to the record's source reference; undefined if it has none. */
  reference_outcome: z.enum(REFERENCE_OUTCOMES).optional(),
  /** The token to which the reference belonged before it was moved. */
  previous_token: z.string().optional(),
  reuse_token: z.string().optional(),
  analytics_token: z.string().optional(),
  bin: z.string().optional(),
  last_four: z.string().optional(),
  expiry_month: z.int().optional(),
  expiry_year: z.int().optional(),
  brand: z.string().optional(),
  token_status: z.string().optional(),
  reversal_status: z.string().optional(),
})
export type RecordResult = z.infer<typeof RecordResult>

const { shape } = RecordResult
type Lenient = { [name in keyof typeof shape]: z.ZodCatch<(typeof shape)[name]> }
const lenient = Object.fromEntries(
  Object.entries<z.ZodType>(shape).map(([name, member]) => [name, member.catch(undefined)]),
) as Lenient

/**
 * One record's outcome as a worker tells it. The outcome may be a word that isn't known here; a member that can't be read
 * counts as absent.
 */
export const AnyRecordResult = z.looseObject({
  ...lenient,
  line: shape.line,
  outcome: z.string(),
  code: shape.code,
  reference_outcome: z.string().optional().catch(undefined),
})
export type AnyRecordResult = z.infer<typeof AnyRecordResult>
