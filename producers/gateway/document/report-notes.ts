// Texts of the OpenAPI document about reports and orders: properties and examples.
import type { Notes } from '../../../src/job/describe/annotate.ts'
import { PAGE_SIZE_DEFAULT } from '../../../src/orders/query.ts'
import { REPORTS_PER_PAGE } from '../reports/report-records.ts'
import { json, type OperationNotes } from './notes.ts'
import { ENTITY, USER } from './samples.ts'

/**
 * Notes on paging parameters. Their defaults stand here, because a schema that turns a query's text into a number loses
 * its default.
 */
function pages(operation: string, size: number): Notes {
  return {
    [`${operation}.query.pageNumber`]: { default: 1 },
    [`${operation}.query.pageSize`]: { default: size },
  }
}

export const REPORT_PROPERTIES: Notes = {
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

export const ORDER_PROPERTIES: Notes = {
  ...pages('listOrders', PAGE_SIZE_DEFAULT),
  orders: 'The orders of this page.',
  orderId: 'Id of the order.',
  orderReference: 'Reference of the order.',
  'orders.status': 'Status of the order.',
  'orders.orderType': 'Type of the order.',
  createdUserUid: 'UUID of the user who created the order.',
  createdBy: 'Name of the user who created the order.',
  createdDate: 'When the order was created, RFC 3339 in UTC.',
  modifiedUserUid: 'UUID of the user who last changed the order.',
  modifiedBy: 'Name of the user who last changed the order.',
  modifiedDate: 'When the order was last changed, RFC 3339 in UTC.',
  entityUid: 'UUID of the entity that the order belongs to.',
  merchantCompanyEntityUid: 'UUID of the merchant company.',
  customerEntityUid: 'UUID of the site (customer entity).',
  metadata: 'The place of this page in the list.',
  'metadata.totalPages': 'Number of pages.',
  'metadata.pageNumber': 'Number of this page, from 1.',
  'metadata.pageSize': 'Most orders that a page holds.',
  'metadata.totalItems': 'Number of orders on all pages.',
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

export const REPORT_OPERATIONS: Readonly<Record<string, OperationNotes>> = {
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

const filter = {
  status: 'SUBMITTED',
  orderType: ['MerchantOrder'],
  startTime: '2026-01-01T00:00:00Z',
  userUids: [USER],
}
const order = {
  orderId: 'O-1001',
  orderReference: 'terminals-berlin',
  status: 'SUBMITTED',
  orderType: 'MerchantOrder',
  createdUserUid: USER,
  createdBy: 'Anna Meyer',
  createdDate: '2026-01-15T10:00:00.000Z',
  modifiedUserUid: USER,
  modifiedBy: 'Anna Meyer',
  modifiedDate: '2026-01-16T08:30:00.000Z',
  entityUid: ENTITY,
}

export const ORDER_OPERATIONS: Readonly<Record<string, OperationNotes>> = {
  listOrders: {
    description:
      "Orders of the caller's entity, page by page, by the date that `filterDateType` names. Each order names who created and who last changed it.",
    parameters: { ...filter, pageNumber: 1, pageSize: 50 },
    answers: {
      200: {
        description: 'One page of orders.',
        examples: json({
          page: { orders: [order], metadata: { totalPages: 1, pageNumber: 1, pageSize: 50, totalItems: 1 } },
        }),
      },
    },
    refusals: { 400: ['field_range', 'query.pageSize'] },
  },
  listOrderCreators: {
    description:
      'Deprecated: still answered, to be removed in a future release. `GET /orders` names the creator beside each order. Who created orders, each once, by name.',
    parameters: filter,
    answers: {
      200: {
        description: 'Those who created orders.',
        examples: json({ creators: [{ createdUserUid: USER, createdBy: 'Anna Meyer' }] }),
      },
    },
    refusals: { 400: ['field_format', 'query.userUids.0'] },
  },
}
