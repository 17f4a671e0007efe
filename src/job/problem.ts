// The error body of INTERFACE 2.8: a fixed message per code, details by field, and never a value.
import { z } from 'zod'
import { REASONS, type Reason, type Refusal } from '../errors.ts'

export const MESSAGES = {
  400: 'At least one parameter is invalid; see details.',
  401: 'Valid credentials are required; check the Authorization header.',
  403: 'Your roles do not permit this query.',
  404: 'The resource, or one nested in it, was not found, deleted or modified; see details.',
  500: 'Unexpected error; quote code and timestamp to support.',
} as const
export type ProblemCode = keyof typeof MESSAGES

export const REVERSAL_STATUSES = ['NONE', 'REQUIRED', 'COMPLETED'] as const
export type ReversalStatus = (typeof REVERSAL_STATUSES)[number]

export const Problem = z.object({
  code: z.union([z.literal(400), z.literal(401), z.literal(403), z.literal(404), z.literal(500)]),
  message: z.string(),
  details: z.record(z.string(), z.object({ message: z.string(), code: z.string() })).optional(),
  /** Milliseconds since the epoch. */
  timestamp: z.number(),
  reversal_status: z.enum(REVERSAL_STATUSES),
})
export type Problem = z.infer<typeof Problem>

export interface FieldReason {
  field: string
  reason: Reason
}

/** Every field a refusal names. */
export function fieldsOf(refusal: Refusal): FieldReason[] {
  return [{ field: refusal.field, reason: refusal.reason }, ...(refusal.also ?? [])]
}

export function problemOf(fields: FieldReason[], timestamp: number, reversalStatus: ReversalStatus = 'NONE'): Problem {
  const code = REASONS[fields[0]?.reason ?? 'internal'].code
  const details = Object.fromEntries(
    fields.map(({ field, reason }) => [field, { message: REASONS[reason].text, code: reason }]),
  )
  return {
    code,
    message: MESSAGES[code],
    ...(code === 500 ? {} : { details }),
    timestamp,
    reversal_status: reversalStatus,
  }
}
