// The error body of each HTTP service, chosen by the path. The reporting and the 3-D Secure service have their own
// forms. Other files decide what is wrong; an error body never holds a value that was sent.
import { REASONS, type Reason, type Refusal, type TokenFlaw } from '../../../src/errors.ts'
import type { Role } from '../../../src/job/choices.ts'
import {
  type FieldReason,
  fieldsOf,
  MESSAGES,
  problemOf,
  type ReversalStatus,
  textOf,
} from '../../../src/job/problem.ts'
import { bodyOf, type ErrorNo, problem } from '../../../src/three-ds/problem.ts'

export type DeclineStatus = 400 | 401 | 403 | 404 | 429 | 500 | 503

export interface Decline {
  status: DeclineStatus
  /** The wrong fields, under `body`, `query` or `params`; empty with 401, 429, 500 and 503. */
  fields: FieldReason[]
  reversalStatus: ReversalStatus
  /**
   * A sentence that says more than the reason, for services whose error body has a place for it. It holds no value that
   * was sent.
   */
  detail?: string
  /** With 401: the flaws of a Bearer token. The challenge names them; the body never does. */
  flaws?: readonly TokenFlaw[]
  /** With 429: after how many seconds the caller may try again. */
  retryAfterS?: number
}

export interface ErrorBody {
  /** The beginning of the service's paths; the longest prefix that matches is used. */
  prefix: string
  /** Makes the error body. `at`: ms since the epoch. */
  render(decline: Decline, at: number): Record<string, unknown>
}

/** The error body of the token service, of orders, and of every path without a form of its own. */
const TOKEN: ErrorBody = {
  prefix: '',
  render: ({ status, fields, reversalStatus, detail }, at) => {
    const message = detail ?? TEXTS[status]
    if (fields.length > 0 && status !== 429 && status !== 401)
      return { ...problemOf(fields, at, reversalStatus, status), code: status, message }
    return { code: status, message, timestamp: at, reversal_status: reversalStatus }
  },
}
const TEXTS = {
  ...MESSAGES,
  429: 'Too many requests; try again after the seconds of Retry-After.',
  503: 'This is not available here.',
} as const satisfies Record<DeclineStatus, string>

/** The body of the reporting service. `param` names the first wrong parameter, if there is one. */
const REPORTS: ErrorBody = {
  prefix: '/oidc/report-engine/',
  render: ({ status, fields, detail }, at) => {
    const { title, type } = REPORT_ERRORS[status]
    const [param] = status === 401 || status === 429 || status === 500 ? [] : fields.map(({ field }) => nameOf(field))
    const named = fields.map(one => [nameOf(one.field), textOf(one)].filter(Boolean).join(': '))
    return {
      code: `${status}`,
      title,
      message: detail ?? (param === undefined ? TEXTS[status] : named.join(' ')),
      timestamp: new Date(at).toISOString(),
      type,
      ...(param ? { param } : {}),
    }
  },
}
export const REPORT_ERRORS = {
  400: { title: 'Bad Request', type: 'INVALID_REQUEST_ERROR' },
  401: { title: 'Unauthorized', type: 'AUTHENTICATION_ERROR' },
  403: { title: 'Forbidden', type: 'AUTHENTICATION_ERROR' },
  404: { title: 'Not Found', type: 'INVALID_REQUEST_ERROR' },
  429: { title: 'Too Many Requests', type: 'RATE_LIMIT_ERROR' },
  500: { title: 'Internal Server Error', type: 'API_ERROR' },
  503: { title: 'Service Unavailable', type: 'API_ERROR' },
} as const satisfies Record<DeclineStatus, { title: string; type: string }>

/** The body of the 3-D Secure service: an error number in place of the status, and no `reversal_status`. */
const THREE_DS: ErrorBody = {
  prefix: '/oidc/3ds-service',
  render: ({ status, fields }, at) => {
    const inQuery = status === 400 && fields.every(({ field }) => field.startsWith('query'))
    const shown = status === 400 || status === 403 || status === 404 ? fields : []
    return { ...bodyOf(problem(inQuery ? 102 : THREE_DS_NUMBERS[status], ...shown), at).body }
  },
}
const THREE_DS_NUMBERS = {
  400: 101,
  401: 201,
  403: 202,
  404: 206,
  429: 207,
  500: 500,
  503: 500,
} as const satisfies Record<DeclineStatus, ErrorNo>

/** `query.search` → `search`; empty for a field that isn't one parameter. */
const nameOf = (field: string): string => field.replace(/^(body|query|params)\.?/, '')

/** One entry per service that has an error body of its own. */
export const ERROR_BODIES: readonly ErrorBody[] = [TOKEN, REPORTS, THREE_DS]

export function errorBodyOf(path: string): ErrorBody {
  const fitting = ERROR_BODIES.filter(({ prefix }) => path.startsWith(prefix))
  return fitting.reduce((best, body) => (body.prefix.length > best.prefix.length ? body : best), TOKEN)
}

export function declineOf(refusal: Refusal): Decline {
  return { status: REASONS[refusal.reason].code, fields: fieldsOf(refusal), reversalStatus: 'NONE' }
}

/** A decline with one field and one reason. */
export function declineFor(reason: Reason, field: string): Decline {
  return declineOf({ refused: true, reason, field })
}

/** The decline of a caller who lacks all of these roles, each of which would do. */
export function roleMissing(field: string, role: Role, ...others: readonly Role[]): Decline {
  const text =
    others.length === 0 ? `The role ${role} is missing.` : `None of the roles ${[role, ...others].join(', ')} is held.`
  return { status: 403, fields: [{ field, reason: 'role_missing', text }], reversalStatus: 'NONE' }
}

/** The decline for missing or wrong credentials. `flaws`: those of a Bearer token; empty if the request had none. */
export function unauthenticated(flaws: readonly TokenFlaw[] = []): Decline {
  return { status: 401, fields: [], reversalStatus: 'NONE', flaws }
}

/** The decline if there is no place for report files; it stays until the operator changes a setting. */
export const REPORTS_UNAVAILABLE: Decline = {
  status: 503,
  fields: [],
  reversalStatus: 'NONE',
  detail: REASONS.reports_unavailable.text,
}

/** The decline if the request can't be served now. Nothing of it was begun. */
export function busy(retryAfterS: number): Decline {
  return { status: 429, fields: [], reversalStatus: 'NONE', retryAfterS }
}

export function failed(reversalStatus: ReversalStatus): Decline {
  return { status: 500, fields: [], reversalStatus }
}

/**
 * A decline as an error, for hooks and parsers of fastify, which can only throw. Handlers return a decline as a value
 * (`decline`).
 */
export class Declined extends Error {
  override name = 'Declined'
  readonly decline: Decline

  constructor(decline: Decline) {
    super('declined')
    this.decline = decline
  }
}
