// `POST /reports`. If a report for the same request exists or is being made, it is the answer; else a job is stored and
// queued, like other operations. The id of the job's receipt is the report's id. The request doesn't wait for the
// report.
import { createHash, randomUUID } from 'node:crypto'
import { isRefusal } from '../../../src/errors.ts'
import { requestText } from '../../../src/job/envelope/digest.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import { panNameRefusal } from '../../../src/job/envelope/names.ts'
import { failureFor, failureOf } from '../../../src/job/problem.ts'
import { definitionOf } from '../../../src/report/definitions.ts'
import { recordOf } from '../../../src/report/record.ts'
import { requestKey } from '../../../src/report/request-key.ts'
import * as operations from '../../../src/store/job/operations.ts'
import { findAnswers } from '../../../src/store/report/report-answers.ts'
import type { StoredReport } from '../../../src/store/report/reports.ts'
import type { ReportOrder, ReportRecord } from '../../http/messages/reports.ts'
import type { Caller } from '../app.ts'
import { type Decline, renamed } from '../error-bodies.ts'
import { accept, type OperationDeps } from '../operations/operations.ts'
import { type Found, find } from './report-standing.ts'

/** `ended`: no worker is making the report any more. */
export type Requested = { record: ReportRecord; ended: boolean } | { declined: Decline }

/** A worker that makes a report gives signs of life more often than this. */
const SILENT_MS = 120_000
/**
 * How many jtis are tried. Each earlier job of the same request may have ended without a report, or with a report that
 * was removed since. The last try uses a random name.
 */
const ATTEMPTS_MAX = 8

export async function request(
  asked: ReportOrder,
  caller: Caller,
  idempotencyKey: string | undefined,
  deps: OperationDeps,
): Promise<Requested> {
  const { reportType, reportEntityUid: entityId, mimeType, refresh = false } = asked
  if (!caller.client.entities.includes(entityId))
    return { declined: failureFor('entity_forbidden', 'body.reportEntityUid') }
  const definition = definitionOf(reportType)
  if (!definition) return { declined: failureFor('report_unavailable', 'body.reportType') }
  const plan = definition.plan(asked.reportParameter)
  if (isRefusal(plan)) return { declined: renamed(failureOf(plan), fieldOf) }
  const { parameters } = plan
  const key = requestKey({ reportType, entityId, parameters, mimeType })
  const { made, underWay, lastUid } = await findAnswers(deps.store, key, SILENT_MS)
  if (made && !refresh) return answerOf(made)
  // A report that is being made now is as fresh as one that would be begun after it.
  if (underWay && (underWay.heardOf || (await isQueued(underWay.report.reportUid, deps))))
    return answerOf(underWay.report)

  const misnamed = panNameRefusal({ request: { parameters } }, caller.client.names)
  if (misnamed) return { declined: renamed(failureOf(misnamed), fieldOf) }
  const job = { report_type: reportType, entity_id: entityId, parameters, mime_type: mimeType }
  // `refresh` is left out if it makes no difference: if no report exists, any new one is fresh. With an idempotency key
  // the request stays as it was sent.
  const anew = made === undefined && idempotencyKey === undefined ? {} : { refresh }
  const write = { kind: 'report', request: { ...job, ...anew } } as const
  return queueReport(write, { ...asked, reportParameter: parameters }, { idempotencyKey, lastUid }, caller, deps)
}

/** `lastUid`: the id of the last job of this request that ended without a report. */
async function queueReport(
  write: { kind: 'report'; request: object & Record<string, unknown> },
  asked: ReportOrder,
  { idempotencyKey, lastUid }: { idempotencyKey: string | undefined; lastUid: string | undefined },
  caller: Caller,
  deps: OperationDeps,
): Promise<Requested> {
  let previous = lastUid ?? ''
  for (let attempt = 1; ; attempt += 1) {
    // Until a job has ended, the same request gets the same job id, so two requests at once get one report.
    const fresh = attempt === ATTEMPTS_MAX ? randomUUID() : nameOf(caller, write.request, previous)
    const jti = idempotencyKey ?? fresh
    const reportUid = receiptId(caller.client.clientId, jti)
    const accepted = await accept({ ...write, idempotencyKey: jti }, caller, deps)
    if ('declined' in accepted) return accepted
    const found = await find(reportUid, caller, deps)
    const isLast = idempotencyKey !== undefined || attempt === ATTEMPTS_MAX
    if (isLast || statusOf(found) !== 'FAILED')
      return found && 'report' in found
        ? answerOf(found.report)
        : answerWith(recordOfJob(asked, reportUid, found, deps))
    previous = reportUid
  }
}

function statusOf(found: Found | undefined): string | undefined {
  return found && 'report' in found ? found.report.status : found?.status
}

const answerOf = (report: StoredReport): Requested => answerWith(recordOf(report) as ReportRecord)

function answerWith(record: ReportRecord): Requested {
  return { record, ended: record.status !== 'INITIATED' && record.status !== 'PROCESSING_STARTED' }
}

/** Field of a job → field of the HTTP request. */
const fieldOf = (field: string) => field.replace(/^body\.parameters\b/, 'body.reportParameter')

function nameOf({ entityId }: Caller, job: object, previous: string): string {
  const digest = createHash('sha256').update(requestText('report', { job, entityId, previous }))
  return `report-${digest.digest('base64url')}`
}

async function isQueued(reportUid: string, { store }: OperationDeps): Promise<boolean> {
  return (await operations.find(store, reportUid))?.state === 'QUEUED'
}

/** The record of a report whose job no worker has begun. */
function recordOfJob(
  { reportType, reportParameter, mimeType, reportEntityUid }: ReportOrder,
  reportUid: string,
  found: Found | undefined,
  { clock }: OperationDeps,
): ReportRecord {
  const { status, createdOn } =
    found && 'status' in found ? found : { status: 'INITIATED' as const, createdOn: clock() }
  const moment = new Date(createdOn).toISOString()
  const asked = { reportUid, reportType, reportParameter, mimeType, reportEntityUid }
  return { ...asked, createdOn: moment, modifiedOn: moment, status }
}
