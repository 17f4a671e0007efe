// Texts of the OpenAPI document about reports: properties and examples.
import type { Notes } from '../../../src/job/describe/annotate.ts'
import { type DocumentNotes, json, type OperationNotes, pages } from '../document/notes.ts'
import { ENTITY } from '../document/samples.ts'
import { REPORTS_PER_PAGE } from './report-records.ts'

const PROPERTIES: Notes = {
  reports: 'The reports of this page.',
  reportUid: 'UUID of the report.',
  reportType: 'Type of the report.',
  'requestReport.body.reportParameter':
    'Parameters of the report, by name. Each type has its own, such as `reportableDay` and `clearingDate`; docs/reports.md lists them. A parameter that the type does not have is refused.',
  reportParameter: 'Parameters of the report, by name, with defaults filled in.',
  mimeType: 'Format of the file.',
  reportEntityUid: 'UUID of the entity that the report is about.',
  createdOn: 'When the report was asked for, RFC 3339 in UTC.',
  modifiedOn: 'When the report last changed, RFC 3339 in UTC.',
  'reports.status':
    '`INITIATED` and `PROCESSING_STARTED`: being made. `SUCCESSFUL`: the file is there. `FAILED` and `INVALID_INPUT_PARAMETERS`: `failureReason` says why.',
  'requestReport.200.status':
    'How the report ended: `SUCCESSFUL`, or `INVALID_INPUT_PARAMETERS` and `FAILED` with `failureReason`.',
  'requestReport.202.status': 'How far the report has come: `INITIATED` or `PROCESSING_STARTED`.',
  lines: 'Number of lines in the report, without totals. Known once it is `SUCCESSFUL`.',
  bytes: 'Size of the file in bytes. Known once it is `SUCCESSFUL`.',
  failureReason: 'Why there is no file. Absent otherwise.',
  ...pages('searchReports', REPORTS_PER_PAGE),
  orderCriteria: 'What the list is ordered by.',
  'searchReports.query.orderBy': 'Order of the list: `ASC` upwards, `DESC` downwards.',
  'if-range': 'ETag of a file. `range` is regarded only where the file still has it.',
  'if-none-match': 'ETags. Where the file has one of them the answer is 304 without a body.',
}

const UID = '4d9e2b7a-6c1f-5e38-a0b4-9f8e7d6c5b4a'
const asked = {
  reportType: 'DAILY_TRANSACTION_REPORT',
  reportEntityUid: ENTITY,
  reportParameter: { reportableDay: '2026-01-30' },
  mimeType: 'text/csv',
}
const initiated = {
  reportUid: UID,
  ...asked,
  createdOn: '2026-01-31T03:00:00.000Z',
  modifiedOn: '2026-01-31T03:00:00.000Z',
  status: 'INITIATED',
}
const successful = {
  ...initiated,
  status: 'SUCCESSFUL',
  modifiedOn: '2026-01-31T03:00:02.114Z',
  fileName: `DAILY_TRANSACTION_REPORT_2026-01-30_${UID}.csv`,
  lines: 2,
  bytes: 812,
  sha256: '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b',
}
const files = {
  'application/pdf': { file: '%PDF-1.4 …' },
  'text/csv': { file: 'record,currency,type,gross\r\nLINE,EUR,SALE,25.00\r\n' },
  'text/plain': { file: 'currency  type     gross\nEUR       SALE     25.00\n' },
}

const OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  searchReports: {
    description:
      "Lists reports of the caller's entity, page by page. `search` narrows the list; to see other entities of the client it names them by `reportEntityUid`.",
    parameters: {
      search: 'reportType==DAILY_TRANSACTION_REPORT;createdOn>2026-01-30',
      pageNumber: 1,
      pageSize: 50,
      orderBy: 'DESC',
      orderCriteria: 'createdOn',
    },
    answers: {
      200: { description: 'One page of reports.', examples: json({ page: { totals: 1, reports: [successful] } }) },
    },
    refusals: { 400: ['search_unreadable', 'query.search'] },
  },
  requestReport: {
    description:
      'The same type, entity, parameters and format are the same report. With `refresh` it is made anew. Poll `searchReports`, or download the file at Location.',
    parameters: { 'idempotency-key': 'daily-2026-01-30' },
    body: json({ 'daily transactions': asked }),
    answers: {
      200: { examples: json({ 'made before': successful }) },
      202: { examples: json({ 'being made': initiated }) },
    },
    refusals: {
      400: ['field_required', 'body.reportParameter.reportableDay'],
      403: ['entity_forbidden', 'body.reportEntityUid'],
    },
  },
  downloadReport: {
    description:
      'The file of a report, whole or one range of it. `ETag` is the SHA-256 of the file. A report that has no file is answered with 404, and `message` names its status.',
    parameters: { reportUid: UID, range: 'bytes=0-1023' },
    answers: { 200: { examples: files }, 206: { examples: files } },
    refusals: { 400: ['field_format', 'params.reportUid'], 404: ['report_not_ready', 'params.reportUid'] },
  },
}

export const REPORT_NOTES: DocumentNotes = {
  tags: [{ name: 'Reports', description: 'Reports are searched, asked for and downloaded.' }],
  properties: PROPERTIES,
  operations: OPERATIONS,
}
