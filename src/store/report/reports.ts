// Reports: one row each, with the request, the progress, and the key of the file. The job that makes a report holds its
// request; other jobs with the same request wait, or get the same report. report-rows.ts reads a report's content.
import type { FaultCode } from '../../errors.ts'
import type { ReportStatus } from '../../job/choices.ts'
import type { MimeType, ReportType } from '../../job/report.ts'
import type { Coder } from '../codes.ts'
import { nextRevision } from '../event/events.ts'
import { tell } from '../event/tell.ts'
import { type Db, LostRace, type Store } from '../pool.ts'

export interface StoredReport {
  reportUid: string
  reportType: ReportType
  reportParameter: Record<string, string | number | boolean>
  mimeType: MimeType
  reportEntityUid: string
  fileName: string | null
  /** All times in this file are ms since the epoch. */
  createdOn: number
  modifiedOn: number
  status: ReportStatus
  clientId: string
  periodClosed: boolean | null
  asOf: number | null
  lines: number | null
  totals: unknown
  bytes: number | null
  /** Hexadecimal. */
  sha256: string | null
  storageKey: string | null
  failureReason: string | null
}

/** The columns of a report, also for other files that select reports (report-search.ts). */
export const COLUMNS = `
  report_uid as "reportUid",
  report_type as "reportType",
  report_parameter as "reportParameter",
  mime_type as "mimeType",
  report_entity_uid as "reportEntityUid",
  file_name as "fileName",
  created_on as "createdOn",
  modified_on as "modifiedOn",
  status,
  client_id as "clientId",
  period_closed as "periodClosed",
  as_of as "asOf",
  lines,
  totals,
  bytes,
  encode(sha256, 'hex') as sha256,
  storage_key as "storageKey",
  failure_reason as "failureReason"`

/** A report by its uid, which must be a UUID. */
export async function find(db: Db, reportUid: string): Promise<StoredReport | undefined> {
  const { rows } = await db.query<StoredReport>({
    text: `select ${COLUMNS}
from tokenmill.report
where report_uid = $1`,
    values: [reportUid],
  })
  return rows[0]
}

export interface Asked {
  reportUid: string
  reportType: ReportType
  reportParameter: StoredReport['reportParameter']
  mimeType: MimeType
  reportEntityUid: string
  clientId: string
  requestKey: Buffer
  period: { from: string; to: string } | undefined
}

/** `mine`: this job makes the report. `stored`: the report exists. `busy`: another job is making it. */
interface Claim {
  claim: 'mine' | 'stored' | 'busy'
  report: StoredReport
}

/**
 * Decides which job makes this report. If several jobs have the same request, one gets it; a job that gave no sign of
 * life for `staleMs` loses it. With `refresh` a stored report counts only if this job made it. `askedAt`: when the job was
 * sent, ms since the epoch; null: no report of an open period answers it.
 */
export function claim(
  store: Store,
  coder: Coder,
  asked: Asked,
  { refresh, staleMs, askedAt }: { refresh: boolean; staleMs: number; askedAt: number | null },
): Promise<Claim> {
  return store.transaction(
    async db => {
      const own = await find(db, asked.reportUid)
      if (own?.status === 'SUCCESSFUL') return { claim: 'stored', report: own }
      const stored = refresh ? undefined : await findAnswer(db, asked.requestKey, askedAt)
      if (stored) {
        // No event is written: the job is answered with the other report.
        if (own) await endFailed(db, own.reportUid, `report ${stored.reportUid} of the same request was made meanwhile`)
        return { claim: 'stored', report: stored }
      }
      const other = await findUnderWay(db, asked.requestKey, asked.reportUid, staleMs)
      if (other && !other.stale) return { claim: 'busy', report: other }
      if (other) await failOne(db, coder, other.reportUid, { word: 'abandoned', reason: ABANDONED })
      return { claim: 'mine', report: await (own ? begin(db, asked) : insert(db, asked, 'INITIATED', null)) }
    },
    { lock: lockOf(asked.requestKey) },
  )
}

const lockOf = (requestKey: Buffer): string => requestKey.toString('hex', 0, 16)

/** The newest stored report of the same request whose rows were read after its period had ended, or after `askedAt`. */
async function findAnswer(db: Db, requestKey: Buffer, askedAt: number | null): Promise<StoredReport | undefined> {
  const { rows } = await db.query<StoredReport>({
    text: `select ${COLUMNS}
from tokenmill.report
where request_key = $1 and status = 'SUCCESSFUL' and (period_closed or as_of > $2::timestamptz)
order by created_on desc
limit 1`,
    values: [requestKey, askedAt === null ? null : new Date(askedAt)],
  })
  return rows[0]
}

async function findUnderWay(
  db: Db,
  requestKey: Buffer,
  otherThan: string,
  staleMs: number,
): Promise<(StoredReport & { stale: boolean }) | undefined> {
  const { rows } = await db.query<StoredReport & { stale: boolean }>({
    text: `select ${COLUMNS},
  modified_on < now() - $3 * interval '1 millisecond' as stale
from tokenmill.report
where request_key = $1 and report_uid <> $2 and status in ('INITIATED', 'PROCESSING_STARTED')
limit 1`,
    values: [requestKey, otherThan, staleMs],
  })
  return rows[0]
}

async function insert(
  db: Db,
  asked: Asked,
  status: 'INITIATED' | 'INVALID_INPUT_PARAMETERS',
  failureReason: string | null,
): Promise<StoredReport> {
  const { rows } = await db.query<StoredReport>({
    text: `insert into tokenmill.report (
  report_uid,
  report_type,
  report_parameter,
  mime_type,
  report_entity_uid,
  client_id,
  request_key,
  period_from,
  period_to,
  status,
  failure_reason
)
values (
  $1,
  $2,
  $3::jsonb,
  $4,
  $5,
  $6,
  $7,
  $8,
  $9,
  $10,
  $11
)
on conflict (report_uid) do update
set status = excluded.status, failure_reason = excluded.failure_reason, modified_on = now()
  where tokenmill.report.status <> 'SUCCESSFUL'
returning ${COLUMNS}`,
    values: [
      asked.reportUid,
      asked.reportType,
      JSON.stringify(asked.reportParameter),
      asked.mimeType,
      asked.reportEntityUid,
      asked.clientId,
      asked.requestKey,
      asked.period?.from ?? null,
      asked.period?.to ?? null,
      status,
      failureReason,
    ],
  })
  if (!rows[0]) throw new LostRace('the report was made meanwhile')
  return rows[0]
}

/** Stores a report that can't be made. `reason` names the wrong parameters. */
export async function refuseParameters(db: Db, coder: Coder, asked: Asked, reason: string): Promise<StoredReport> {
  return told(db, coder, await insert(db, asked, 'INVALID_INPUT_PARAMETERS', reason), 'parameters')
}

/** Begins the report of this job, which may have begun before, from the start. */
async function begin(db: Db, asked: Asked): Promise<StoredReport> {
  const { rows } = await db.query<StoredReport>({
    text: `update tokenmill.report
set
  status = 'INITIATED',
  failure_reason = null,
  lines = null,
  modified_on = now()
where report_uid = $1 and status <> 'SUCCESSFUL'
returning ${COLUMNS}`,
    values: [asked.reportUid],
  })
  if (!rows[0]) throw new LostRace('the report was made meanwhile')
  return rows[0]
}

/**
 * Records that `lines` rows were read; null: nothing new. Each call is also the sign of life that keeps other jobs from
 * taking over.
 */
export async function progress(db: Db, reportUid: string, lines: number | null): Promise<void> {
  await db.query({
    text: `update tokenmill.report
set modified_on = now(), status = case when $2::bigint is null then status else 'PROCESSING_STARTED' end,
  lines = coalesce($2::bigint, lines)
where report_uid = $1 and status in ('INITIATED', 'PROCESSING_STARTED')`,
    values: [reportUid, lines],
  })
}

export interface Made {
  fileName: string
  storageKey: string
  bytes: number
  /** Hexadecimal. */
  sha256: string
  lines: number
  totals: unknown
  periodClosed: boolean
  asOf: number
}

/** Ends the report as made. Throws LostRace if another attempt has ended it meanwhile. */
export async function succeed(db: Db, coder: Coder, reportUid: string, made: Made): Promise<StoredReport> {
  const { rows } = await db.query<StoredReport>({
    text: `update tokenmill.report
set
  status = 'SUCCESSFUL',
  modified_on = now(),
  file_name = $2,
  storage_key = $3,
  bytes = $4,
  sha256 = $5,
  lines = $6,
  totals = $7::jsonb,
  period_closed = $8,
  as_of = $9
where report_uid = $1 and status = 'PROCESSING_STARTED'
returning ${COLUMNS}`,
    values: [
      reportUid,
      made.fileName,
      made.storageKey,
      made.bytes,
      Buffer.from(made.sha256, 'hex'),
      made.lines,
      JSON.stringify(made.totals),
      made.periodClosed,
      new Date(made.asOf),
    ],
  })
  if (!rows[0]) throw new LostRace('the report was ended meanwhile')
  return told(db, coder, rows[0])
}

interface Failure {
  word: FailureWord
  reason: string
}

/** Ends the report as failed. Subscribers get `word`; only callers who may see the report get `reason`. */
export function fail(store: Store, coder: Coder, reportUid: string, failure: Failure): Promise<void> {
  return store.transaction(db => failOne(db, coder, reportUid, failure))
}

async function failOne(db: Db, coder: Coder, reportUid: string, { word, reason }: Failure): Promise<void> {
  const failed = await endFailed(db, reportUid, reason)
  if (failed) await told(db, coder, failed, word)
}

async function endFailed(db: Db, reportUid: string, reason: string): Promise<StoredReport | undefined> {
  const { rows } = await db.query<StoredReport>({
    text: `update tokenmill.report
set status = 'FAILED', failure_reason = $2, modified_on = now()
where report_uid = $1 and status in ('INITIATED', 'PROCESSING_STARTED')
returning ${COLUMNS}`,
    values: [reportUid, reason],
  })
  return rows[0]
}

const ABANDONED = 'abandoned: whoever made it was not heard of any more'

/** Ends as FAILED the reports whose maker gave no sign of life since `before` (ms). Returns how many. */
export function failAbandoned(store: Store, coder: Coder, before: number): Promise<number> {
  return store.transaction(async db => {
    const { rows } = await db.query<StoredReport>({
      text: `update tokenmill.report
set status = 'FAILED', failure_reason = $2, modified_on = now()
where status in ('INITIATED', 'PROCESSING_STARTED') and modified_on < $1
returning ${COLUMNS}`,
      values: [new Date(before), ABANDONED],
    })
    for (const row of rows) await told(db, coder, row, 'abandoned')
    return rows.length
  })
}

/** Writes the event of a report that has just ended. The transaction has locked the report's row. */
async function told(db: Db, coder: Coder, report: StoredReport, word?: FailureWord): Promise<StoredReport> {
  await tellEnd(db, coder, report, word)
  return report
}

export async function remove(db: Db, reportUid: string): Promise<void> {
  await db.query({
    text: `delete from tokenmill.report
where report_uid = $1`,
    values: [reportUid],
  })
}

interface EndedReport {
  reportUid: string
  reportType: ReportType
  reportEntityUid: string
  clientId: string
  status: ReportStatus
  fileName: string | null
}

/** Why a report has no file. `abandoned`: its maker stopped giving signs of life. */
type FailureWord = FaultCode | 'parameters' | 'abandoned'

/**
 * Writes the event that a report ended: made, failed, or refused for its parameters. It names the report and, if there is
 * no file, gives the reason as one word: the texts of failures may hold sums of the report or details of the
 * installation. The transaction holds the report's row, because a failed report may be begun again and end a second time.
 */
async function tellEnd(db: Db, coder: Coder, report: EndedReport, reason: FailureWord | undefined): Promise<void> {
  const { reportUid, clientId, status, fileName } = report
  const revision = await nextRevision(db, clientId, reportUid)
  await tell(db, coder, {
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
