// The page of one run: how it went, its report and where the file is, and why it failed. The console serves no files of reports: they
// hold amounts, and the console reaches none of the folders and buckets (docs/decisions/console-acts.md).
import type { SeenRun } from '../../../src/store/console/runs.ts'
import * as seenRuns from '../../../src/store/console/runs.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { chosen } from '../failed/text.ts'
import { command, count, duration, id, moment } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { stateMark } from '../state-mark.ts'
import { isDay, isUuid } from './filters.ts'
import { schedulePath, seeingOf } from './list.ts'
import { rowsOf } from './runs.ts'
import { type Seeing, stateOfRun } from './state.ts'
import { entityOf, formatOf, nextStepOf, reasonOf, whatOf } from './text.ts'

export function runRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string; date: string; entity: string } }>(
    '/reports/runs/:id/:date/:entity',
    async (request, reply) => {
      const session = sessionOf(request)
      const sight = sightOf(session.entities)
      const { id: scheduleId, date: businessDate, entity: entityId } = request.params
      const isKey = isUuid(scheduleId) && isDay(businessDate) && isUuid(entityId)
      const run = isKey ? await seenRuns.find(sight, deps.store, { scheduleId, businessDate, entityId }) : undefined
      if (!run) return sendPage(reply, 404, missingPage(deps, session))
      const content = runContent(run, session, await seeingOf(deps, sight))
      return sendPage(reply, 200, framed(deps, { title: 'One run', session, at: 'reports', content }))
    },
  )
}

function runContent(run: SeenRun, session: Pick<LiveSession, 'roles'>, seeing: Seeing): Html {
  const { scheduleId, businessDate, isScheduleSeen } = run
  const back = isScheduleSeen
    ? html`<a href="${schedulePath(run)}">${whatOf(run)}</a>`
    : html`<a href="/reports">Reports</a>`
  return html`<p class="up">${back}</p>
<h1>${whatOf(run)}, ${businessDate} ${stateMark(stateOfRun(run, seeing))}</h1>
${why(run, seeing)}
${againLink(run, session)}
${run.kind === 'report' ? html`<section><h2>Report</h2>${reportFacts(run)}</section>` : undefined}
<section><h2>Facts</h2>${runFacts(run, seeing.now)}</section>
<p class="same">The same on the command line: ${command('tokenmill', 'schedule', 'runs', scheduleId)}</p>`
}

/** Of a run that has not ended well, why, and what to do. */
function why(run: SeenRun, seeing: Seeing): Html | undefined {
  const { state, reason, nextAt, reportStatus } = run
  if (state === 'FAILED' && reason !== null)
    return html`<p class="effect">${reasonOf(reason)} ${nextStepOf(reason)}</p>`
  if (state === 'FAULTED' && reason !== null)
    return html`<p class="effect">${reasonOf(reason)} It is tried again by itself${nextAt === null ? undefined : html` from ${moment(nextAt)} UTC on`}.</p>`
  if (run.waitsForResume) return html`<p class="effect">Its schedule is paused: it begins when somebody resumes it.</p>`
  if (state === 'DUE')
    return html`<p class="effect">${seeing.isScheduled ? 'A scheduler sends it within a minute, unless 1,000 reports are under way.' : html`No scheduler was heard just now, so nobody sends it. Start one: ${command('tokenmill', 'scheduler')}`}</p>`
  if (state === 'QUEUED')
    return html`<p class="effect">${reportStatus === 'PROCESSING_STARTED' ? making(seeing) : html`It was sent, and no worker has answered. If that lasts, see whether a worker takes reports: ${command('tokenmill', 'status')}`}</p>`
  return undefined
}

function making({ isWorked }: Seeing): Html {
  return isWorked
    ? html`A worker is making it.`
    : html`A worker began it, and no worker that makes reports was heard just now: whether it is being made is not known. Look: ${command('tokenmill', 'status')}`
}

function againLink(run: SeenRun, session: Pick<LiveSession, 'roles'>): Html | undefined {
  const { state, isScheduleSeen, scheduleId, businessDate } = run
  if (state !== 'FAILED' || !isScheduleSeen || !mayDo('schedule.run', session)) return undefined
  return html`<ul class="acts"><li><a class="button" href="${path`/reports/schedules/${scheduleId}/run?date=${businessDate}`}">Run this day again…</a></li></ul>`
}

function reportFacts(run: SeenRun): Html {
  const { reportUid, reportStatus, mimeType, fileName, bytes, sha256, storageKey, failureReason, madeMs } = run
  if (reportUid === null)
    return html`<p class="empty">There is no report: no worker has begun it, or it is older than reports are kept.</p>`
  const isMade = reportStatus === 'SUCCESSFUL'
  const rows = rowsOf(run)
  const facts: [string, Value][] = [
    ['Report', id(reportUid)],
    ['Status', reportStatus ?? undefined],
    ['Why', failureReason === null ? undefined : chosen(failureReason)],
    ['Rows', rows === null ? undefined : count(rows)],
    ['Made in', isMade && madeMs !== null ? duration(madeMs / 1000) : undefined],
    ['File', fileName === null ? undefined : html`<code>${fileName}</code>`],
    ['Format', mimeType === null ? undefined : formatOf(mimeType)],
    ['Size', bytes === null ? undefined : `${count(bytes)} bytes`],
    ['SHA-256', sha256 === null ? undefined : html`<code class="digest">${sha256}</code>`],
    [
      'Place',
      storageKey === null ? undefined : html`<code>${storageKey}</code> in the folder or bucket of REPORTS_URL`,
    ],
  ]
  const download =
    fileName === null
      ? undefined
      : html`<p>The file is not served here. This takes it, and checks its SHA-256: ${command('tokenmill', 'report', 'download', reportUid, '--out', fileName)}</p>`
  return html`${list(facts)}${download}`
}

function runFacts(run: SeenRun, now: number): Html {
  const { dueAt, lateAt, endedAt, attempts, faults, tokens, kind, entityId } = run
  const at = (ms: number | null) => (ms === null ? undefined : html`${moment(ms)} UTC`)
  return list([
    ['Schedule', id(run.scheduleId)],
    ['Entity', entityOf(entityId)],
    ['Due', at(dueAt)],
    ['Late since', at(lateAt)],
    ['Ended', at(endedAt)],
    [
      'Took',
      endedAt === null ? undefined : `${duration(Math.max(0, endedAt - dueAt) / 1000)} from its time to its end`,
    ],
    ['Sent', attempts === 0 ? undefined : attempts === 1 ? 'once' : `${count(attempts)} times`],
    ['Faults', faults === 0 ? undefined : count(faults)],
    ['Tokens', kind === 'token-expiry' && tokens !== null ? count(tokens) : undefined],
    ['Read', at(now)],
  ])
}

function list(facts: readonly [string, Value][]): Html {
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}
