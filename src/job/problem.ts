// Why a job had no effect, and the error body that says so: a fixed message per code, details by field, and never a value.
// Failures travel: each results queue, HTTP service and file makes its own text of one.
import { z } from 'zod'
import { type FieldReason, fieldsOf, meaningOf, type Reason, type Refusal, textOf } from '../errors.ts'

export const MESSAGES = {
  400: 'At least one parameter is invalid; see details.',
  401: 'Valid credentials are required; check the Authorization header.',
  403: 'Your roles do not permit this query.',
  404: 'The resource, or one nested in it, was not found, deleted or modified; see details.',
  500: 'Unexpected error; quote code and timestamp to support.',
} as const
type ProblemCode = keyof typeof MESSAGES

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

/** Why a job had no effect. */
export interface Failure<Status extends number = ProblemCode> {
  status: Status
  /** The wrong fields, under `body`, `query` or `params`. */
  fields: FieldReason[]
  reversalStatus: ReversalStatus
}

export function failureOf(refusal: Refusal, reversalStatus: ReversalStatus = 'NONE'): Failure {
  return { status: meaningOf(refusal.reason).code, fields: fieldsOf(refusal), reversalStatus }
}

/** The failure for one reason. */
export function failureFor(reason: Reason, field: string, reversalStatus?: ReversalStatus): Failure {
  return failureOf({ refused: true, reason, field }, reversalStatus)
}

/** The error body of a result. `timestamp`: ms since the epoch. */
export function problemOf({ status, fields, reversalStatus }: Failure, timestamp: number): Problem {
  return {
    code: status,
    message: MESSAGES[status],
    ...(status === 500 && !fields.some(isTold) ? {} : { details: detailsOf(fields) }),
    timestamp,
    reversal_status: reversalStatus,
  }
}

/** Of what is wrong inside, only this is told: a repeat will not end it, so whoever repeats has to ask the operator. */
const isTold = ({ reason }: FieldReason) => reason === 'receipt_unproved' || reason === 'scheme_token_unproved'

export function detailsOf(fields: readonly FieldReason[]): Record<string, { message: string; code: string }> {
  return Object.fromEntries(fields.map(one => [one.field, { message: textOf(one), code: one.reason }] as const))
}

/** The known status for any status: an unknown 4xx becomes 400 (RFC 9110 15), any other unknown status 500. */
export function problemCodeOf(status: number): ProblemCode {
  if (Object.hasOwn(MESSAGES, status)) return status as ProblemCode
  return status >= 400 && status < 500 ? 400 : 500
}

const FIELDS_MAX = 50
const FIELD = /^(body|query|params)(\.[A-Za-z0-9_.()-]{1,200})?$/
const Detail = z.object({ code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/) })

/**
 * The reasons in the error body of a result. An entry that isn't a field and a word is left out. The texts aren't read:
 * whoever shows a reason has a text for it (`textOf`).
 */
export function reasonsIn(error: { details?: unknown } | undefined): FieldReason[] {
  const told = Object.entries(error?.details ?? {}).flatMap(([field, detail]) => {
    const { success, data } = Detail.safeParse(detail)
    return success && FIELD.test(field) ? [{ field, reason: data.code }] : []
  })
  return told.slice(0, FIELDS_MAX)
}

/** The first of them; `internal` if there is none. */
export function reasonIn(error: { details?: unknown } | undefined): FieldReason {
  return reasonsIn(error)[0] ?? { field: 'body', reason: 'internal' }
}

const Told = z.object({
  code: z.int().transform(problemCodeOf),
  details: z.unknown().optional(),
  reversal_status: Problem.shape.reversal_status.catch('REQUIRED'),
})

/**
 * The failure that the error body of a result tells. If it can't be read whether something must still be reversed,
 * `reversalStatus` is `REQUIRED`.
 */
export function failureIn(error: unknown): Failure {
  const told = Told.safeParse(error).data
  if (!told) return failureFor('internal', 'body', 'REQUIRED')
  return { status: told.code, fields: reasonsIn(told), reversalStatus: told.reversal_status }
}
