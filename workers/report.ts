// `report`: makes a report, or answers with one that exists. Before the line's transaction a separate process makes the
// file, under a name that nothing refers to; the transaction makes it the report's file. After a crash in between a
// file without a row is left, and the next attempt starts from the beginning.
import { assert, FAULTS, Fault, fieldsOf, isRefusal, type Refusal, refuse, toFault } from '../src/errors.ts'
import type { Report } from '../src/job/report.ts'
import type { Plan } from '../src/report/definition.ts'
import { definitionOf } from '../src/report/definitions.ts'
import { recordOf } from '../src/report/record.ts'
import { requestKey } from '../src/report/request-key.ts'
import * as reports from '../src/store/report/reports.ts'
import { isOfSeveral } from '../src/store/report-queries/batch.ts'
import { readClock } from '../src/store/server.ts'
import type { Deps } from './deps.ts'
import type { MakeReport } from './report/child.ts'
import type { ReportTask } from './report/make.ts'
import { areReportsMade } from './report/makers.ts'
import { type Decision, type Handler, Postponed, type Retells, type Work } from './work.ts'

type Prepared = { invalid: Refusal; asked: reports.Asked } | { task: ReportTask; asked: reports.Asked } | Reached

type Reached = { stored: reports.StoredReport } | { made: reports.Made; asked: reports.Asked }

/** How often a job that makes a report gives a sign of life: more often than required. */
const ALIVE_MS = 10_000
const STALE_MS = 120_000
const ASK_AGAIN_MS = 1_000
const DAY_MS = 86_400_000
const NOT_ENDED_MS_MAX = 60_000
/** How long the job waits for a host that makes reports to take it. */
const ELSEWHERE_MS = 2_000
/**
 * Equals the limit in run-job.ts, which imports the handlers and so can't be imported by one; a test compares the two.
 */
export const LAST_ATTEMPT = 8

/** What a process makes reports with. */
export interface ReportMaking {
  makeReport: MakeReport
  /** Whether this process has a place for report files. Another one only puts jobs off, or refuses them. */
  makesReports: boolean
}

export function openReport({ makeReport, makesReports }: ReportMaking): Handler<Report, undefined, Prepared> & Retells {
  return {
    goesByClock: makesReports,

    async prepare({ request, client, receiptId }, _opened, deps) {
      if (!makesReports && !(await areReportsMade(deps))) return refuse('reports_unavailable', 'body.kind')
      const definition = definitionOf(request.report_type)
      if (!definition) return refuse('report_unavailable', 'body.report_type')
      if (!client.entities.includes(request.entity_id)) return refuse('entity_forbidden', 'body.entity_id')
      const plan = definition.plan(request.parameters)
      const requested = {
        reportType: request.report_type,
        entityId: request.entity_id,
        parameters: isRefusal(plan) ? request.parameters : plan.parameters,
        mimeType: request.mime_type,
      }
      const asked: reports.Asked = {
        reportUid: receiptId,
        reportType: requested.reportType,
        reportParameter: requested.parameters,
        mimeType: requested.mimeType,
        reportEntityUid: requested.entityId,
        clientId: client.clientId,
        requestKey: requestKey(requested),
        period: isRefusal(plan) ? undefined : plan.period,
      }
      const invalid = isRefusal(plan) ? plan : await batchRefusal(plan, request.entity_id, deps)
      return invalid ? { invalid, asked } : { task: { reportUid: receiptId, ...requested }, asked }
    },

    async reach(work, prepared, deps) {
      if (!('task' in prepared)) return prepared
      if (!makesReports) throw new Postponed(ELSEWHERE_MS)
      const { task, asked } = prepared
      const isNightly = work.claims.iss === 'scheduler'
      if (isNightly) await awaitEnd(asked.period, deps)
      const { claim, report: found } = await reports.claim(deps.store, deps.ring, asked, {
        refresh: work.request.refresh === true,
        staleMs: STALE_MS,
        askedAt: isNightly ? null : askedAtOf(work),
      })
      // Another job is making the same report, which may answer this job, too.
      if (claim === 'busy') throw new Postponed(ASK_AGAIN_MS)
      return claim === 'stored' ? { stored: found } : { made: await make(work, task, { ...deps, makeReport }), asked }
    },

    decide: async (_work, prepared, deps) => decisionOf(prepared, deps),

    // The receipt's outcome is the report's uid; reports are kept longer than receipts.
    async retell({ outcome }, { store }) {
      const found = await reports.find(store, outcome ?? '')
      return found ? recordOf(found) : { reportUid: outcome }
    },
  }
}

/** By how much the clock of a client and the store's may differ, in ms, so that no older report answers a request. */
const SKEW_MS = 60_000

/**
 * A client's `iat` has whole seconds, so it may be earlier than a report that was made before the client asked. What the
 * queue says isn't signed; a time in the future counts as now.
 */
function askedAtOf({ acceptedAt, enqueuedAt, now }: Work<Report>): number {
  return Math.min(Math.max(acceptedAt, enqueuedAt), now) + SKEW_MS
}

/** Puts the job off if the report's period has not ended by the store's clock: nobody would make a nightly report again. */
async function awaitEnd(period: reports.Asked['period'], { store }: Deps): Promise<void> {
  if (!period) return
  const leftMs = Date.parse(period.to) + DAY_MS - (await readClock(store))
  if (leftMs > 0) throw new Postponed(Math.min(leftMs, NOT_ENDED_MS_MAX))
}

/** The refusal of a report on a batch if the request doesn't say which of several batches. */
async function batchRefusal(
  { filter: { batchId, clientId } }: Plan,
  entityId: string,
  { store }: Deps,
): Promise<Refusal | undefined> {
  if (batchId === null || clientId !== null || !(await isOfSeveral(store, entityId, batchId))) return undefined
  return refuse('batch_of_several', 'body.parameters.clientId')
}

function decisionOf(prepared: Prepared, { ring }: Pick<Deps, 'ring'>): Decision {
  return {
    async save(db) {
      if ('invalid' in prepared) {
        const { invalid, asked } = prepared
        const wrong = fieldsOf(invalid).map(({ field, reason }) =>
          `${field.replace(/^body\.parameters\.?/, '')} ${reason}`.trim(),
        )
        await reports.refuseParameters(db, ring, asked, wrong.join(', '))
        return invalid
      }
      assert(!('task' in prepared), 'a report is made before it is remembered')
      const ended =
        'stored' in prepared
          ? prepared.stored
          : await reports.succeed(db, ring, prepared.asked.reportUid, prepared.made)
      // The receipt stores the uid of the report with which the job was answered: a new one or an existing one.
      return { code: 200, outcome: ended.reportUid, tokenId: null, record: recordOf(ended) }
    },
  }
}

async function make(
  { attempt, receiptId: reportUid, progress }: Work<Report>,
  task: ReportTask,
  {
    store,
    ring,
    log,
    makeReport,
    span: jobSpan,
  }: Pick<Deps, 'store' | 'ring' | 'log' | 'span'> & Pick<ReportMaking, 'makeReport'>,
): Promise<reports.Made> {
  const span = jobSpan?.child('make report', { attributes: { 'report.type': task.reportType } })
  let lines: number | null = null
  let fault: string | undefined
  let telling: Promise<void> = Promise.resolve()
  const tell = () => {
    telling = telling.then(() => reports.progress(store, reportUid, lines)).catch(() => {})
  }
  // Signs of life are also given while the job waits for its turn.
  const alive = setInterval(tell, ALIVE_MS)
  try {
    const ended = await makeReport(task, count => {
      const begins = lines === null
      lines = count
      progress?.({ lines: count })
      if (begins) tell()
    })
    await telling
    span?.set({ 'report.lines': lines ?? 0 })
    if ('made' in ended) return ended.made
    log.error({ reason: ended.mismatch }, 'a report does not tie out')
    await reports.fail(store, ring, reportUid, { word: 'report_mismatch', reason: ended.mismatch })
    throw new Fault('report_mismatch')
  } catch (error) {
    await telling
    const { code, message } = toFault(error)
    fault = code
    // No further attempt will follow.
    if (FAULTS[code].verdict === 'fail' || attempt >= LAST_ATTEMPT)
      await reports.fail(store, ring, reportUid, { word: code, reason: message }).catch(() => {})
    throw error
  } finally {
    span?.end(fault)
    clearInterval(alive)
  }
}
