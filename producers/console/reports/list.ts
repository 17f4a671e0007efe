// The page of schedules, those that need somebody first, and of their runs, the newest day first.
import { nextDue } from '../../../src/job/schedule/business-dates.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import type { ListedRun } from '../../../src/store/console/runs.ts'
import * as seenRuns from '../../../src/store/console/runs.ts'
import type { ListedSchedule } from '../../../src/store/console/schedules.ts'
import * as seenSchedules from '../../../src/store/console/schedules.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, duration, id, moment } from '../figures.ts'
import { type Html, html, type Path, path } from '../html.ts'
import { isHeard, isWatched } from '../pulse.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, sendPage, when } from '../server/page.ts'
import { type ShownState, stateMark } from '../state-mark.ts'
import { type AskedRuns, addressOf, commandOf, filterForm, isFiltered, readAsked } from './filters.ts'
import { runTable } from './runs.ts'
import { type Seeing, stateOfSchedule, troubleSince } from './state.ts'
import { timeOf, whatOf } from './text.ts'

/** How many runs one page lists. */
const LISTED = 50
/** How many schedules are listed, and how many the filter offers. */
const SCHEDULES = 200

export function reportListRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get('/reports', async (request, reply) => {
    const { store } = deps
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const asked = readAsked(request.query)
    const seeing = await seeingOf(deps, sight)
    const [schedules, found] = await Promise.all([
      seenSchedules.list(sight, store, { ...troubleSince(seeing), limit: SCHEDULES + 1 }),
      seenRuns.list(sight, store, { ...asked, limit: LISTED + 1 }),
    ])
    const runs = found.slice(0, LISTED)
    const isFirst = asked.after === undefined && !isFiltered(asked)
    const content = html`<h1>Reports and schedules</h1>
${when(!seeing.isScheduled, NOBODY)}
${isFirst ? scheduleSection(schedules, seeing) : html`<p class="up"><a href="/reports">All schedules</a></p>`}
<section><h2>Runs</h2>
${schedules.length === 0 ? undefined : filterForm(asked, schedules.slice(0, SCHEDULES))}
${runs.length === 0 ? emptyRuns(asked) : runTable(runs, seeing)}
<p class="pages">${pages(asked, found.length > LISTED ? runs.at(-1) : undefined)}</p></section>
<p class="same">The same on the command line: ${command('tokenmill', 'schedule', 'list')} and ${command(...commandOf(asked))}. Reports that clients asked for themselves: ${command('tokenmill', 'report', 'list')}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Reports', session, at: 'reports', content }))
  })
}

/** Without a scheduler nothing runs, whatever the rows of the store say. */
export const NOBODY = html`<p class="effect">No scheduler was heard just now: nothing below begins before one runs. Start it: <code class="command">tokenmill scheduler</code></p>`

export async function seeingOf(
  { store, clock, scheduleLateMs }: Pick<ConsoleDeps, 'store' | 'clock' | 'scheduleLateMs'>,
  sight: Sight,
): Promise<Seeing> {
  const pulse = await seenNow.findPulse(sight, store, 'report')
  return { now: clock(), lateMs: scheduleLateMs, isScheduled: isWatched(pulse), isWorked: isHeard(pulse) }
}

export function schedulePath({ scheduleId }: { scheduleId: string }): Path {
  return path`/reports/schedules/${scheduleId}`
}

function scheduleSection(schedules: readonly ListedSchedule[], seeing: Seeing): Html {
  const listed = schedules
    .slice(0, SCHEDULES)
    .map(schedule => ({ schedule, ...stateOfSchedule(schedule, seeing) }))
    .sort((a, b) => a.rank - b.rank || (a.since ?? 0) - (b.since ?? 0))
  if (listed.length === 0)
    return html`<div class="empty"><p>A schedule makes a report every night, about the day before. None that is yours to see was added.</p>
<p>One is added with ${command('tokenmill', 'schedule', 'add', '--type', 'DAILY_TRANSACTION_REPORT', '--time', '02:00', '--zone', 'Europe/Berlin', '--client', 'NAME')}</p></div>`
  return html`<section><h2>Schedules</h2>
<table class="two-lines schedules">
<thead><tr><th scope="col">What</th><th scope="col" class="entity">Entity</th><th scope="col">State</th><th scope="col">Every day at</th><th scope="col" class="last">Last day</th><th scope="col" class="upcoming">Next (UTC)</th></tr></thead>
<tbody>${listed.map(one => scheduleRow(one, seeing.now))}</tbody>
</table>
${when(schedules.length > SCHEDULES, html`<p class="muted">These are the first ${count(SCHEDULES)}. All: ${command('tokenmill', 'schedule', 'list')}</p>`)}</section>`
}

function scheduleRow(
  { schedule, state, since }: { schedule: ListedSchedule; state: ShownState; since?: number | undefined },
  now: number,
): Html {
  const { entityId, kind, clientName, clientId } = schedule
  const all = html`<span class="muted">all of ${clientName ?? id(clientId ?? '')}</span>`
  const whose = kind === 'report' ? (entityId === null ? all : id(entityId)) : undefined
  return html`<tr>
<td class="main"><a href="${schedulePath(schedule)}">${whatOf(schedule)}</a></td>
<td class="entity">${whose}</td>
<td class="mark">${stateMark(state)}${sinceText(since, now)}</td>
<td class="when">${timeOf(schedule)}</td>
<td class="last">${lastOf(schedule)}</td>
<td class="upcoming">${nextOf(schedule, now)}</td>
</tr>`
}

function nextOf(schedule: ListedSchedule, now: number): Html {
  if (schedule.pausedAt !== null) return html`<span class="muted">when it is resumed</span>`
  return isZone(schedule.zone) ? moment(nextDue(schedule, now).dueAt) : html`<span class="muted">not known</span>`
}

function sinceText(since: number | undefined, now: number): Html | undefined {
  return since === undefined
    ? undefined
    : html` <span class="muted">for ${duration(Math.max(0, now - since) / 1000)}</span>`
}

function lastOf({ lastDate, lastState, lastRuns = 0 }: ListedSchedule): Html {
  if (lastDate == null || lastState == null) return html`<span class="muted">none yet</span>`
  const more = lastRuns > 1 ? html` <span class="muted">${count(lastRuns)} runs</span>` : undefined
  return html`${lastDate} ${stateMark(lastState)}${more}`
}

function pages(asked: AskedRuns, last: ListedRun | undefined): Html {
  const { scheduleId, businessDate, entityId } = last ?? { scheduleId: '', businessDate: '', entityId: '' }
  return html`${asked.after && html`<a href="${addressOf({ ...asked, after: undefined })}">Newest</a> `}${
    last && html`<a href="${addressOf({ ...asked, after: { scheduleId, businessDate, entityId } })}">Older</a>`
  }`
}

function emptyRuns(asked: AskedRuns): Html {
  if (asked.after) return html`<p class="empty">No older runs.</p>`
  if (isFiltered(asked))
    return html`<p class="empty">No run that is yours to see is like this. Others may be: <a href="/reports">show all</a>.</p>`
  return html`<p class="empty">A run is one day of a schedule. None that is yours to see was made yet: the first one begins at its schedule’s time.</p>`
}
