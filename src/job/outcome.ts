// The closed set of outcomes of a batch's record, and their counts.
import { z } from 'zod'

export const OUTCOMES = ['CREATED', 'UPDATED', 'UNCHANGED', 'DUPLICATE', 'REJECTED', 'FAILED', 'CANCELLED'] as const
export type Outcome = (typeof OUTCOMES)[number]

export type Counts = Record<Outcome, number>

export function noCounts(): Counts {
  return { CREATED: 0, UPDATED: 0, UNCHANGED: 0, DUPLICATE: 0, REJECTED: 0, FAILED: 0, CANCELLED: 0 }
}

/** How many records have ended. */
export function sumOf(counts: Counts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + counts[outcome], 0)
}

/** Outcomes after which the token is as the record, or the policy, wanted it. */
export function tookEffect(outcome: Outcome): boolean {
  return outcome === 'CREATED' || outcome === 'UPDATED' || outcome === 'UNCHANGED' || outcome === 'DUPLICATE'
}

/** One record's outcome in the result of its chunk. */
export const RecordResult = z.object({
  line: z.int(),
  reference: z.string().optional(),
  outcome: z.enum(OUTCOMES),
  /** The HTTP status that the same work would have had over HTTP. */
  code: z.int(),
  reason: z.string().optional(),
  /** Which field of the record the reason speaks of. */
  field: z.string().optional(),
  /** The part that failed, where that is the scheme token. */
  failed_facet: z.enum(['token', 'scheme_token']).optional(),
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
