// The event that a report ended: made, failed, or refused for its parameters. It is written with the report's row. It
// names the report and, if there is no file, gives the reason as one word: the texts of failures may hold sums of the
// report or details of the installation.
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

/** Why a report has no file. `abandoned`: its maker stopped giving signs of life. */
export type FailureWord = FaultCode | 'parameters' | 'abandoned'

/**
 * Writes the event. The transaction holds the report's row, because a failed report may be begun again and end a second
 * time.
 */
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
