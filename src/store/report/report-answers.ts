// Finds the report that answers a request: one that was made before, for the same entity, type and parameters, by any
// client. reports.ts decides who makes a new report.
import type { Db } from '../pool.ts'
import { COLUMNS, type StoredReport } from './reports.ts'

interface Answers {
  /** A finished report whose period was over when the report was made. A repeated request is answered by it. */
  made: StoredReport | undefined
  /** A report that hasn't ended. `heardOf`: its maker gave a sign of life within `silentMs`. */
  underWay: { report: StoredReport; heardOf: boolean } | undefined
  /** The newest report for this request, however it ended. */
  lastUid: string | undefined
}

/** Finds the reports with this `requestKey` (request-key.ts). */
export async function findAnswers(db: Db, requestKey: Buffer, silentMs: number): Promise<Answers> {
  const part = (name: string, where: string) => `(select '${name}' as part,
  modified_on >= now() - $2 * interval '1 millisecond' as "heardOf", ${COLUMNS}
from tokenmill.report
where request_key = $1 ${where}
order by created_on desc, report_uid
limit 1)`
  const { rows } = await db.query<StoredReport & { part: 'made' | 'open' | 'last'; heardOf: boolean }>({
    text: [
      part('made', `and status = 'SUCCESSFUL' and period_closed`),
      part('open', `and status in ('INITIATED', 'PROCESSING_STARTED')`),
      part('last', ''),
    ].join(' union all '),
    values: [requestKey, silentMs],
  })
  const [made, open, last] = (['made', 'open', 'last'] as const).map(name => rows.find(row => row.part === name))
  return {
    made,
    underWay: open && { report: open, heardOf: open.heardOf },
    lastUid: last?.reportUid,
  }
}
