// The routes of the reporting service: search, request and download reports. Workers make reports. Whose reports a
// caller sees doesn't depend on the search expression.
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Fault } from '../../../src/errors.ts'
import { failureFor } from '../../../src/job/problem.ts'
import type { ReportFiles } from '../../../src/report/files/files.ts'
import { recordOf } from '../../../src/report/record.ts'
import { isParseError } from '../../../src/rsql/parse-error.ts'
import { search } from '../../../src/store/report/report-search.ts'
import { Nothing } from '../../http/messages/cards.ts'
import { ReportOrder, ReportRecord } from '../../http/messages/reports.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps, GatewayService } from '../deps.ts'
import type { Decline } from '../error-bodies.ts'
import { idempotencyKeyOf, WriteHeaders } from '../server/headers.ts'
import { decline, sendAny } from '../server/replies.ts'
import { REPORT_ERROR_BODY, REPORTS_UNAVAILABLE } from './error-body.ts'
import { REPORT_NOTES } from './notes.ts'
import { joinRawSearch } from './raw-search.ts'
import { answerWithFile } from './report-file.ts'
import { ERRORS, fileOf, ReportPage, ReportQuery, ReportUid, UNAVAILABLE } from './report-records.ts'
import { request } from './report-request.ts'
import { find } from './report-standing.ts'

/** After how many seconds a report is asked for. */
const RETRY_AFTER_S = '5'
const REPORTS = '/oidc/report-engine/api/v1/reports'
const TAGS = ['Reports']

const FileHeaders = z.looseObject({
  range: z.string().optional().describe('One range of bytes; others are left out of account.'),
  'if-range': z.string().optional(),
  'if-none-match': z.string().optional(),
})

/** The reporting service. `reportFiles`: undefined if no place for report files is set that every host reaches. */
export function reportService(reportFiles: ReportFiles | undefined): GatewayService {
  return {
    routes: [(app, deps) => addRoutes(app, deps, reportFiles)],
    notes: REPORT_NOTES,
    errorBody: REPORT_ERROR_BODY,
  }
}

function addRoutes(app: GatewayApp, deps: GatewayDeps, reportFiles: ReportFiles | undefined): void {
  app.route({
    method: 'GET',
    url: REPORTS,
    config: { access: ['REPORT_READ'] },
    schema: {
      operationId: 'searchReports',
      summary: 'Searches reports, page by page',
      tags: TAGS,
      querystring: ReportQuery,
      response: { 200: ReportPage, ...ERRORS },
    },
    preValidation: joinSearch,
    handler: async ({ query, caller: { client, entityId } }, reply) => {
      const others = client.entities.filter(entity => entity !== entityId)
      const found = await search(deps.store, { ...query, entities: [entityId, ...others] }).catch(tooLong)
      if ('status' in found) return decline(reply, found)
      if (isParseError(found)) {
        const { message: detail } = found
        return decline(reply, { ...failureFor('search_unreadable', 'query.search'), detail })
      }
      const records = found.reports.map(report => recordOf(report) as ReportRecord)
      return reply.code(200).send({ totals: found.totals, reports: records })
    },
  })

  app.route({
    method: 'POST',
    url: REPORTS,
    config: { access: ['REPORT_REQUEST'] },
    schema: {
      operationId: 'requestReport',
      summary: 'Asks for a report: one that was made already is answered at once, else one is made',
      tags: TAGS,
      headers: WriteHeaders,
      body: ReportOrder,
      response: {
        200: ReportRecord.describe('It had ended before: nothing is being made.'),
        202: ReportRecord.describe('It is being made, and can be downloaded at Location once it is SUCCESSFUL.'),
        ...ERRORS,
        ...UNAVAILABLE,
      },
    },
    handler: async ({ body, caller, headers }, reply) => {
      if (!reportFiles) return decline(reply, REPORTS_UNAVAILABLE)
      const requested = await request(body, caller, idempotencyKeyOf(headers), deps)
      if ('declined' in requested) return decline(reply, requested.declined)
      const { record, ended } = requested
      if (!ended) reply.header('retry-after', RETRY_AFTER_S)
      return reply
        .header('location', `${REPORTS}/${record.reportUid}`)
        .code(ended ? 200 : 202)
        .send(record)
    },
  })

  app.route({
    method: 'GET',
    url: `${REPORTS}/:reportUid`,
    config: { access: ['REPORT_READ'] },
    schema: {
      operationId: 'downloadReport',
      summary: 'Downloads the file of a report',
      tags: TAGS,
      headers: FileHeaders,
      params: ReportUid,
      response: {
        200: fileOf('The file. ETag is its SHA-256.'),
        206: fileOf('The range of it that was asked for.'),
        304: Nothing.describe('Its ETag is one of If-None-Match.'),
        ...ERRORS,
        ...UNAVAILABLE,
      },
    },
    handler: async ({ params: { reportUid }, caller, headers }, reply) => {
      if (!reportFiles) return decline(reply, REPORTS_UNAVAILABLE)
      const found = await find(reportUid, caller, deps)
      if (!found) return decline(reply, failureFor('report_not_found', 'params.reportUid'))
      const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = headers
      const asked = { range, ifRange, ifNoneMatch }
      const answer = 'report' in found && (await answerWithFile(found.report, asked, reportFiles, deps))
      if (!answer) return decline(reply, unready('report' in found ? found.report.status : found.status))
      return sendAny(reply.code(answer.status).headers(answer.headers), answer.file)
    },
  })
}

async function joinSearch(request: FastifyRequest): Promise<void> {
  request.query = joinRawSearch(request.url, Object.keys(ReportQuery.shape)) ?? request.query
}

function unready(status: string): Decline {
  const ends = status === 'INITIATED' || status === 'PROCESSING_STARTED'
  const detail = `This report is ${status}${ends ? ' and has no file yet' : ' and has no file'}.`
  return { ...failureFor('report_not_ready', 'params.reportUid'), detail }
}

/** The decline for a search that took too long: a pattern may cost more than it looks. */
function tooLong(error: unknown): Decline {
  if (error instanceof Fault && error.code === 'deadline') return failureFor('search_too_long', 'query.search')
  throw error
}
