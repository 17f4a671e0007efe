// The error body of the token service, and the choice of a service's body by the path: other services have their own
// forms. Other files decide what is wrong; an error body never holds a value that was sent.
import type { TokenFlaw } from '../../src/errors.ts'
import type { Role } from '../../src/job/choices.ts'
import { detailsOf, type Failure, MESSAGES, type ReversalStatus } from '../../src/job/problem.ts'

export type DeclineStatus = 400 | 401 | 403 | 404 | 429 | 500 | 503

/** What a request is answered if it had no effect; `fields` is empty with 401, 429, 500 and 503. */
export interface Decline extends Failure<DeclineStatus> {
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
export const TOKEN_ERRORS: ErrorBody = {
  prefix: '',
  render: ({ status, fields, reversalStatus, detail }, at) => {
    const details = fields.length === 0 || SILENT.has(status) ? {} : { details: detailsOf(fields) }
    const message = detail ?? STATUS_TEXTS[status]
    return { code: status, message, ...details, timestamp: at, reversal_status: reversalStatus }
  },
}
/** Statuses whose body names no fields. */
const SILENT: ReadonlySet<number> = new Set([401, 429, 500, 503])

/** What each status says if no field is named. */
export const STATUS_TEXTS = {
  ...MESSAGES,
  429: 'Too many requests; try again after the seconds of Retry-After.',
  503: 'This is not available here.',
} as const satisfies Record<DeclineStatus, string>

/** The error body of the path: that of the service with the longest prefix. `others`: services beside the token service. */
export function errorBodyOf(path: string, others: readonly ErrorBody[]): ErrorBody {
  const fitting = others.filter(({ prefix }) => path.startsWith(prefix))
  return fitting.reduce((best, body) => (body.prefix.length > best.prefix.length ? body : best), TOKEN_ERRORS)
}

/** The same with the fields of the HTTP request in place of those of the job. */
export function renamed<Named extends Failure<DeclineStatus>>(failure: Named, name: (field: string) => string): Named {
  return { ...failure, fields: failure.fields.map(one => ({ ...one, field: name(one.field) })) }
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
