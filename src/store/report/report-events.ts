// The event of a report that ended: made, failed, or refused for its parameters. It is written with the report's own row, and
// names the report and, as a word, why it has no file: texts of failures hold sums of the report, or speak of the installation.
import type { FaultCode } from '../../errors.ts'
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
}

/** Why a report has no file. `abandoned`: its maker was not heard of any more. */
export type FailureWord = FaultCode | 'parameters' | 'abandoned'

/** The transaction holds the report's row: a report that failed may be begun anew, and end once more. */
export async function tellEnd(db: Db, report: EndedReport, reason: FailureWord | undefined): Promise<void> {
  const { reportUid, clientId, status, fileName } = report
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
      ...(reason !== undefined && { reason }),
    },
  })
}
