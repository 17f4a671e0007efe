// The error body of the 3-D Secure service: an error number in place of the status, and no `reversal_status`.
import { bodyOf, type ErrorNo, problem } from '../../../src/three-ds/problem.ts'
import type { DeclineStatus, ErrorBody } from '../error-bodies.ts'

/** For refusals of fastify or the server; answer.ts makes the same body of an error number. */
export const THREE_DS_ERROR_BODY: ErrorBody = {
  prefix: '/oidc/3ds-service',
  render: ({ status, fields }, at) => {
    const inQuery = status === 400 && fields.every(({ field }) => field.startsWith('query'))
    const shown = status === 400 || status === 403 || status === 404 ? fields : []
    return { ...bodyOf(problem(inQuery ? 102 : NUMBERS[status], ...shown), at).body }
  },
}

const NUMBERS = {
  400: 101,
  401: 201,
  403: 202,
  404: 206,
  429: 207,
  500: 500,
  503: 500,
} as const satisfies Record<DeclineStatus, ErrorNo>
