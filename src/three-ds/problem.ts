// Every refusal of this service: its three-digit error number (not the HTTP status), its HTTP status and its text. The
// field `error_no` of records has the same numbers. Texts never quote a value.
import { type FieldReason, fieldsOf, type Refusal } from '../errors.ts'
import { detailsOf } from '../job/problem.ts'

/** Means "no error", in records, whose `error_no` is always given. */
export const NO_ERROR = '0'

export const ERRORS = {
  // The request.
  101: { status: 400, text: 'At least one parameter is invalid; see details.' },
  102: { status: 400, text: 'The filter, sort or page is invalid; see details.' },
  103: { status: 400, text: 'This idempotency key was used for another request.' },
  // The caller's rights.
  201: { status: 401, text: 'Valid credentials are required; check the Authorization header.' },
  202: { status: 403, text: 'Your roles do not permit this query.' },
  203: { status: 404, text: 'No such 3-D Secure contract.' },
  204: { status: 404, text: 'No such authentication.' },
  205: { status: 404, text: 'No such card.' },
  206: { status: 404, text: 'No such operation.' },
  207: { status: 429, text: 'Too many requests; try again after the seconds of Retry-After.' },
  // The card.
  301: { status: 400, text: 'The card can not be used; see details.' },
  302: { status: 400, text: 'The brand of this card does not take part in 3-D Secure.' },
  // The JWT that comes back from the browser.
  401: { status: 400, text: 'The JWT is malformed.' },
  402: { status: 400, text: 'The signature of the JWT is not by the key of this contract.' },
  403: { status: 400, text: 'The JWT is too old.' },
  404: { status: 400, text: 'The JWT answers none that was created here.' },
  405: { status: 400, text: 'The JWT was used before.' },
  406: { status: 400, text: 'The JWT belongs to another contract.' },
  407: { status: 400, text: 'The JWT belongs to another authentication.' },
  408: { status: 400, text: 'The JWT contradicts how the authentication ended.' },
  409: { status: 400, text: 'The authentication awaits no result.' },
  // Unexpected errors, and errors of the directory server.
  500: { status: 500, text: 'Unexpected error; quote code and timestamp to support.' },
  501: { status: 504, text: 'The directory server could not be reached; nothing was sent.' },
  502: { status: 504, text: 'The directory server did not answer in time; the outcome is unknown.' },
  503: { status: 504, text: 'The same lookup is under way; ask again.' },
  // These numbers end an authentication as U and appear only in its record.
  511: { status: 504, text: 'The answer of the directory server was malformed.' },
  512: { status: 504, text: 'The directory server refused the request.' },
  513: { status: 504, text: 'The challenge was not finished in time.' },
} as const satisfies Record<number, { status: 400 | 401 | 403 | 404 | 429 | 500 | 504; text: string }>

export type ErrorNo = keyof typeof ERRORS

/** A refusal of this service. */
export interface Problem {
  problem: ErrorNo
  details: FieldReason[]
}

export function problem(no: ErrorNo, ...details: Problem['details']): Problem {
  return { problem: no, details }
}

export function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'problem')
}

/** A refusal of a field, under this error number. */
export function problemOf(no: ErrorNo, refusal: Refusal): Problem {
  return problem(no, ...fieldsOf(refusal))
}

interface ProblemBody {
  code: string
  message: string
  details: Record<string, { message: string; code: string }>
  timestamp: number
}

/** The error body of this service, which has no `reversal_status`. `timestamp`: ms since the epoch. */
export function bodyOf({ problem: no, details }: Problem, timestamp: number): { status: number; body: ProblemBody } {
  const { status, text } = ERRORS[no]
  return { status, body: { code: String(no), message: text, details: detailsOf(details), timestamp } }
}
