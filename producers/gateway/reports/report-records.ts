// The schemas of the reporting service, from which the OpenAPI document is made. Like the schemas of the token service,
// they are not applied to answers.
import { z } from 'zod'
import { uuid } from '../../../src/job/envelope/text.ts'
import { MIME_TYPES } from '../../../src/job/report.ts'
import { searchGuide } from '../../../src/rsql/guide.ts'
import { ORDER_CRITERIA, type OrderCriterion, REPORT_FIELDS } from '../../../src/store/report/report-search.ts'
import { ReportRecord } from '../../http/messages/reports.ts'
import { REPORT_ERRORS } from './error-body.ts'

const CRITERIA = Object.keys(ORDER_CRITERIA) as [OrderCriterion, ...OrderCriterion[]]
/** The greatest 32-bit integer, so that clients may hold the number in one. A page beyond the last is empty. */
const PAGE_NUMBER_MAX = 2_147_483_647

export const REPORTS_PER_PAGE = 50

/** A whole number of a query, which arrives as text. A text that isn't digits gets the error "wrong type". */
const count = (most: number) =>
  z.preprocess(
    text => (typeof text === 'string' && /^-?\d{1,15}$/.test(text) ? Number(text) : text),
    z.int().min(1).max(most),
  )

export const ReportQuery = z.strictObject({
  pageNumber: count(PAGE_NUMBER_MAX).default(1).describe('Page of the list, from 1.'),
  pageSize: count(1_000).default(REPORTS_PER_PAGE).describe('Reports per page.'),
  orderBy: z.enum(['ASC', 'DESC']).default('DESC'),
  orderCriteria: z.enum(CRITERIA).default('createdOn'),
  search: z
    .string()
    .optional()
    .describe(
      `RSQL. Comparisons are joined by \`;\`, \`&\` (sent as %26) or \`and\`, which bind tighter, and by \`,\` or \`or\`. Without \`reportEntityUid\` only the caller's own entity is searched.\n\n${searchGuide(REPORT_FIELDS)}`,
    ),
})

export const ReportUid = z.strictObject({ reportUid: uuid() })

export const ReportPage = z.strictObject({
  totals: z.int().min(0).describe('Number of reports on all pages.'),
  reports: z.array(ReportRecord),
})

const errorOf = (status: keyof typeof REPORT_ERRORS, description: string) =>
  z
    .strictObject({
      code: z.literal(`${status}`).describe('The HTTP status of this answer, as text.'),
      title: z.literal(REPORT_ERRORS[status].title),
      message: z.string().describe('What went wrong; of a search, where.'),
      timestamp: z.iso.datetime().describe('Time of the error, RFC 3339 in UTC.'),
      type: z.literal(REPORT_ERRORS[status].type),
      param: z
        .string()
        .optional()
        .describe(
          'Name of the parameter that is wrong. The first where there are several; absent where there is none.',
        ),
    })
    .describe(description)

/** The error body of the reporting service, by status. */
export const ERRORS = {
  400: errorOf(400, 'A parameter is invalid; of a search, `message` says where.'),
  401: errorOf(401, 'No valid credentials.'),
  403: errorOf(403, 'The roles or entities do not permit this.'),
  404: errorOf(404, 'No such report, or one without a file; `message` then names its status.'),
  429: errorOf(429, 'Too much at once; see Retry-After.'),
  500: errorOf(500, 'Unexpected error.'),
}

/** The answer if reports can be neither made nor downloaded. */
export const UNAVAILABLE = { 503: errorOf(503, 'Reports have no common place for their files here: see REPORTS_URL.') }

/** The file itself. */
export const fileOf = (description: string) => ({
  description,
  content: Object.fromEntries(MIME_TYPES.map(type => [type, { schema: z.string() }])),
})
