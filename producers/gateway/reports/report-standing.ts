// Finds the report that belongs to an id, for this caller. A job's report has its id from the start. If an existing
// report answered the job, the job's receipt names that report, and both ids lead to it.
import * as operations from '../../../src/store/job/operations.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { StoredReport } from '../../../src/store/report/reports.ts'
import * as reports from '../../../src/store/report/reports.ts'
import type { Caller } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'

/** A report, or the state of a job without a report: no worker has begun it, or it was refused. */
export type Found = { report: StoredReport } | { status: 'INITIATED' | 'FAILED'; createdOn: number }

/** Undefined if there is no such report, or this client may not see it. */
export async function find(
  reportUid: string,
  { client }: Pick<Caller, 'client'>,
  { store, catalogue }: Pick<GatewayDeps, 'store' | 'catalogue'>,
): Promise<Found | undefined> {
  const isReport = ({ kind }: { kind: string }) => catalogue.find(kind)?.statusAt === 'reports'
  const isOurs = (report: StoredReport | undefined) =>
    report !== undefined && client.entities.includes(report.reportEntityUid)
  const own = await reports.find(store, reportUid)
  if (own && own.status !== 'FAILED') return isOurs(own) ? { report: own } : undefined
  const receipt = await receipts.find(store, reportUid)
  const job = await operations.find(store, reportUid)
  const isOwnJob = job !== undefined && isReport(job) && job.clientId === client.clientId
  if (isOwnJob && job.state === 'QUEUED' && !receipt) return { status: 'INITIATED', createdOn: job.acceptedAt }
  const answer = receipt && isReport(receipt) && receipt.refusal === null ? receipt.outcome : null
  const other = answer === null || answer === reportUid ? undefined : await reports.find(store, answer)
  const report = isOurs(other) ? other : own
  if (report) return isOurs(report) ? { report } : undefined
  return isOwnJob ? { status: 'FAILED', createdOn: job.acceptedAt } : undefined
}
