// Sends the job of a run that is a report. It is signed again each time, and always has the same jti. The worker that
// makes the report decides whether the client may have it.
import { isRefusal } from '../../src/errors.ts'
import { rolesOf } from '../../src/job/envelope/roles.ts'
import { reportKind } from '../../src/job/report.ts'
import { jtiOf } from '../../src/job/schedule/run-job.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Run } from '../../src/store/report/schedule-runs.ts'
import type { ReportSchedule } from '../../src/store/report/schedules.ts'
import { report } from '../report.ts'
import type { SendingDeps } from './own-jobs.ts'
import { parametersOf } from './parameters.ts'

/** Puts the job on its queue. Returns undefined, or the reason why the job can never be sent. */
export async function sendReport(
  run: Run,
  schedule: ReportSchedule,
  owner: Client | undefined,
  { queues, jobs }: SendingDeps,
): Promise<string | undefined> {
  if (!owner || owner.revokedAt !== null) return 'client_revoked'
  const parameters = parametersOf(schedule.reportType, run.businessDate, schedule.parameters)
  if (!parameters) return 'report_unavailable'
  const ask = report({
    report_type: schedule.reportType,
    entity_id: run.entityId,
    parameters,
    mime_type: schedule.mimeType,
  })
  if (isRefusal(ask)) return ask.reason
  const caller = {
    userId: owner.userId,
    entityId: run.entityId,
    roles: rolesOf(reportKind, ask.request),
    onBehalfOf: owner.clientId,
  }
  const job = await jobs.sign(caller, ask, jtiOf(run, schedule))
  if (isRefusal(job)) return job.reason
  await queues.add('report', job)
  return undefined
}
