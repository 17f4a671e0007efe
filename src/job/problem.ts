// The error body of the token service: a fixed message per code, details by field, and never a value. It also reads
// error bodies with more than this schema has: unknown members are passed on, up to a size.
import { z } from 'zod'
import { meaningOf, type Reason, type Refusal } from '../errors.ts'

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

/**
 * An error body as a worker tells it. An unknown status is replaced by a known one, a detail
 * that can't be read is left out, other members pass. If it can't be read whether something must still be reversed,
 * `reversal_status` is `REQUIRED`. A gateway replaces message and time by its own.
 */
export const AnyProblem = z.looseObject({
  ...Problem.shape,
  code: z.int().transform(problemCodeOf),
  message: z.string().catch(''),
  details: z
    .record(z.string(), z.unknown())
    .transform(details =>
      Object.fromEntries(
        Object.entries(details).flatMap(([field, detail]) => {
          const { success, data } = AnyDetail.safeParse(detail)
          return success ? [[field, data]] : []
        }),
      ),
    )
    .optional()
    .catch(undefined),
  timestamp: z.number().catch(0),
  reversal_status: Problem.shape.reversal_status.catch('REQUIRED'),
})
const AnyDetail = z.looseObject({ message: z.string(), code: z.string() })

export interface FieldReason {
  field: string
  /** A word of REASONS, or one that isn't known here. */
  reason: string
  /** The worker's text; undefined: this release's text for the reason. */
  text?: string
}

/** All fields that a refusal names. */
export function fieldsOf(refusal: Refusal): { field: string; reason: Reason }[] {
  return [{ field: refusal.field, reason: refusal.reason }, ...(refusal.also ?? [])]
}

export function textOf({ reason, text }: FieldReason): string {
  return text ?? meaningOf(reason).text
}

export function problemOf(
  fields: FieldReason[],
  timestamp: number,
  reversalStatus: ReversalStatus = 'NONE',
  status: number = meaningOf(fields[0]?.reason ?? 'internal').code,
): Problem {
  const code = problemCodeOf(status)
  const details = Object.fromEntries(
    fields.map(field => [field.field, { message: textOf(field), code: field.reason }] as const),
  )
  return {
    code,
    message: MESSAGES[code],
    ...(code === 500 ? {} : { details }),
    timestamp,
    reversal_status: reversalStatus,
  }
}

/** The known status for any status: an unknown 4xx becomes 400 (RFC 9110 15), any other unknown status 500. */
export function problemCodeOf(status: number): ProblemCode {
  if (Object.hasOwn(MESSAGES, status)) return status as ProblemCode
  return status >= 400 && status < 500 ? 400 : 500
}

const FIELDS_MAX = 50
const FIELD = /^(body|query|params)(\.[A-Za-z0-9_.()-]{1,200})?$/
/** A reason's word and a sentence, without line breaks and without a run of digits that could be a value. */
const Detail = z.object({
  message: z.string().regex(/^(?!.*\d{6})\P{Cc}{1,300}$/u),
  code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
})

/** The fields that a result's error body names. Entries that aren't a field, a word and a sentence are left out. */
export function toldFields({ details = {} }: Pick<Problem, 'details'>): FieldReason[] {
  const told = Object.entries(details).flatMap(([field, detail]) => {
    const { success, data } = Detail.safeParse(detail)
    return success && FIELD.test(field) ? [{ field, reason: data.code, text: data.message }] : []
  })
  return told.slice(0, FIELDS_MAX)
}
