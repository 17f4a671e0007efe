// The error body of the reporting service.
import { REASONS, textOf } from '../../../src/errors.ts'
import { type Decline, type DeclineStatus, type ErrorBody, STATUS_TEXTS } from '../error-bodies.ts'

/** `param` names the first wrong parameter, if there is one. */
export const REPORT_ERROR_BODY: ErrorBody = {
  prefix: '/oidc/report-engine/',
  render: ({ status, fields, detail }, at) => {
    const { title, type } = REPORT_ERRORS[status]
    const [param] = status === 401 || status === 429 || status === 500 ? [] : fields.map(({ field }) => nameOf(field))
    const named = fields.map(one => [nameOf(one.field), textOf(one)].filter(Boolean).join(': '))
    return {
      code: `${status}`,
      title,
      message: detail ?? (param === undefined ? STATUS_TEXTS[status] : named.join(' ')),
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

/** `query.search` → `search`; empty for a field that isn't one parameter. */
const nameOf = (field: string): string => field.replace(/^(body|query|params)\.?/, '')

/** The decline if there is no place for report files; it stays until the operator changes a setting. */
export const REPORTS_UNAVAILABLE: Decline = {
  status: 503,
  fields: [],
  reversalStatus: 'NONE',
  detail: REASONS.reports_unavailable.text,
}
