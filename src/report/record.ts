// A report as callers see it: the public record, and the values with which a reader can verify the file.
import type { ReportStatus } from '../job/choices.ts'
import type { MimeType, ReportType } from '../job/report.ts'

/** The members of a stored report that the record needs. Times are ms since the epoch. */
interface Recordable {
  reportUid: string
  reportType: ReportType
  reportParameter: Record<string, unknown>
  mimeType: MimeType
  reportEntityUid: string
  fileName: string | null
  createdOn: number
  modifiedOn: number
  status: ReportStatus
  lines: number | null
  bytes: number | null
  sha256: string | null
  failureReason: string | null
}

export function recordOf(report: Recordable): Record<string, unknown> {
  const { reportUid, reportType, reportParameter, mimeType, reportEntityUid, fileName, status } = report
  const { lines, bytes, sha256, failureReason } = report
  return {
    reportUid,
    reportType,
    reportParameter,
    mimeType,
    reportEntityUid,
    ...(fileName === null ? {} : { fileName }),
    createdOn: new Date(report.createdOn).toISOString(),
    modifiedOn: new Date(report.modifiedOn).toISOString(),
    status,
    ...(status === 'SUCCESSFUL' ? { lines, bytes, sha256 } : {}),
    ...(failureReason === null ? {} : { failureReason }),
  }
}
