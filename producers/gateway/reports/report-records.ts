// What the reporting service takes and answers with, as CONTRACT 9 has it: the schemas that OpenAPI is made of. Like
// those of the token service they are no filter of answers.
import { z } from 'zod'
import { uuid } from '../../../src/job/envelope/text.ts'
import { MIME_TYPES, Report } from '../../../src/job/report.ts'
import { STATUSES } from '../../../src/report/record.ts'
import { RSQL } from '../../../src/rsql/parse.ts'
import { ORDER_CRITERIA, type OrderCriterion } from '../../../src/store/report/report-search.ts'
import { REPORT_ERRORS } from '../server/faces.ts'

const CRITERIA = Object.keys(ORDER_CRITERIA) as [OrderCriterion, ...OrderCriterion[]]
/** Beyond it a page's place isn't a number that every store can count to. */
const PAGE_NUMBER_MAX = 2_147_483_647

/** A query is text; what isn't digits is of the wrong type. */
const count = (most: number) =>
  z.preprocess(
    text => (typeof text === 'string' && /^-?\d{1,15}$/.test(text) ? Number(text) : text),
    z.int().min(1).max(most),
  )

export const ReportQuery = z.strictObject({
  pageNumber: count(PAGE_NUMBER_MAX).default(1).describe('From 1 (1).'),
  pageSize: count(1_000).default(50).describe('Reports a page (50).'),
  orderBy: z.enum(['ASC', 'DESC']).default('DESC'),
  orderCriteria: z.enum(CRITERIA).default('createdOn'),
  search: z
    .string()
    .optional()
    .describe(
      `RSQL of at most ${RSQL.charactersMax} characters. Without \`reportEntityUid\` in it only the caller's own entity is searched.`,
    ),
})

export const ReportUid = z.strictObject({ reportUid: uuid() })

export const ReportAsked = z.strictObject({
  reportType: Report.shape.report_type,
  reportEntityUid: uuid().describe('An entity of the caller.'),
  reportParameter: Report.shape.parameters.describe('By the type of report: `reportableDay`, `clearingDate`, …'),
  mimeType: Report.shape.mime_type,
  refresh: z.boolean().optional().describe('Made anew, even if there is one.'),
})
export type ReportAsked = z.infer<typeof ReportAsked>

export const ReportRecord = z.strictObject({
  reportUid: z.guid(),
  reportType: Report.shape.report_type,
  reportParameter: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  mimeType: Report.shape.mime_type,
  reportEntityUid: z.guid(),
  fileName: z.string().optional().describe('Known once it is SUCCESSFUL.'),
  createdOn: z.iso.datetime(),
  modifiedOn: z.iso.datetime(),
  status: z.enum(STATUSES),
  lines: z.int().optional(),
  bytes: z.int().optional(),
  sha256: z.string().optional().describe('Of the file, hexadecimal.'),
  failureReason: z.string().optional(),
})
export type ReportRecord = z.infer<typeof ReportRecord>

export const ReportPage = z.strictObject({
  totals: z.int().min(0).describe('On all pages.'),
  reports: z.array(ReportRecord),
})

const errorOf = (status: keyof typeof REPORT_ERRORS, description: string) =>
  z
    .strictObject({
      code: z.literal(`${status}`),
      title: z.literal(REPORT_ERRORS[status].title),
      message: z.string(),
      timestamp: z.iso.datetime(),
      type: z.literal(REPORT_ERRORS[status].type),
      param: z.string().optional().describe('The parameter that is wrong, where it is one.'),
    })
    .describe(description)

/** The error body of CONTRACT 9, by status. */
export const ERRORS = {
  400: errorOf(400, 'A parameter is invalid; of a search, `message` says where.'),
  401: errorOf(401, 'No valid credentials.'),
  403: errorOf(403, 'The roles or entities do not permit this.'),
  404: errorOf(404, 'No such report, or one without a file; `message` then names its status.'),
  429: errorOf(429, 'Too much at once; see Retry-After.'),
  500: errorOf(500, 'Unexpected error.'),
}

/** The file itself. */
export const fileOf = (description: string) => ({
  description,
  content: Object.fromEntries(MIME_TYPES.map(type => [type, { schema: z.string() }])),
})
