// The event of a report that ended: made, failed, or refused for its parameters. It is written with the report's own row, and
// names the report without its figures.
import type { ReportType } from '../../job/report.ts'
import type { ReportStatus } from '../../report/record.ts'
import { nextRevision } from '../event/events.ts'
import { tell } from '../event/tell.ts'
import type { Db } from '../pool.ts'

interface EndedReport {
  reportUid: string
  reportType: ReportType
  reportEntityUid: string
  clientId: string
  status: ReportStatus
  fileName: string | null
  failureReason: string | null
}

const REASON_CHARS_MAX = 500

/** The transaction holds the report's row: a report that failed may be begun anew, and end once more. */
export async function tellEnd(db: Db, report: EndedReport): Promise<void> {
  const { reportUid, clientId, status, fileName, failureReason } = report
  const revision = await nextRevision(db, clientId, reportUid)
  await tell(db, {
    type: status === 'SUCCESSFUL' ? 'report.succeeded' : 'report.failed',
    clientId,
    subject: reportUid,
    revision,
    data: {
      report_uid: reportUid,
      report_type: report.reportType,
      entity_id: report.reportEntityUid,
      revision,
      status,
      ...(fileName !== null && { file_name: fileName }),
      ...(failureReason !== null && { reason: failureReason.slice(0, REASON_CHARS_MAX) }),
    },
  })
}
