// The page of one schedule: what it makes and when, how it is, its last runs, and what may be done to it.
import { dateOf, dayAfter, nextDues } from '../../../src/job/schedule/business-dates.ts'
import { type ScheduleAction, scheduleRefusal } from '../../../src/job/schedule/refusal.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import { SCHEDULE_ACTS } from '../../../src/job/system/schedule-act.ts'
import type { ListedRun } from '../../../src/store/console/runs.ts'
import * as seenRuns from '../../../src/store/console/runs.ts'
import type { SeenSchedule, Trouble } from '../../../src/store/console/schedules.ts'
import * as seenSchedules from '../../../src/store/console/schedules.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { permittedOf, wordOf } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, duration, id, moment } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { shown } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage, when } from '../server/page.ts'
import { type ShownState, stateMark } from '../state-mark.ts'
import { addressOf, isUuid } from './filters.ts'
import { NOBODY, seeingOf } from './list.ts'
import { runTable } from './runs.ts'
import { type Seeing, stateOfSchedule, troubleSince } from './state.ts'
import { formatOf, nextStepOf, reasonOf, unknownZoneOf, whatOf, whenOf } from './text.ts'

const LISTED = 20
const NEXT = 3

/** The schedule of a path, if it is the session's person's to see. */
export async function scheduleOf(
  { store }: Pick<ConsoleDeps, 'store'>,
  session: Pick<LiveSession, 'entities'>,
  scheduleId: string,
): Promise<SeenSchedule | undefined> {
  return isUuid(scheduleId) ? seenSchedules.find(sightOf(session.entities), store, scheduleId) : undefined
}

export function scheduleRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string } }>('/reports/schedules/:id', async (request, reply) => {
    const session = sessionOf(request)
    const schedule = await scheduleOf(deps, session, request.params.id)
    if (!schedule) return sendPage(reply, 404, missingPage(deps, session))
    const sight = sightOf(session.entities)
    const { scheduleId } = schedule
    const seeing = await seeingOf(deps, sight)
    const [trouble, runs] = await Promise.all([
      seenSchedules.findTrouble(sight, deps.store, { scheduleId, ...troubleSince(seeing) }),
      seenRuns.list(sight, deps.store, { scheduleId, limit: LISTED }),
    ])
    const content = scheduleContent({ ...schedule, ...trouble }, { session, runs, seeing })
    return sendPage(reply, 200, framed(deps, { title: 'One schedule', session, at: 'reports', content }))
  })
}

interface Shown {
  session: Pick<LiveSession, 'roles'>
  runs: readonly ListedRun[]
  seeing: Seeing
}

function scheduleContent(schedule: SeenSchedule & Trouble, { session, runs, seeing }: Shown): Html {
  const { scheduleId } = schedule
  const { state, since } = stateOfSchedule(schedule, seeing)
  return html`<p class="up"><a href="/reports">Reports</a></p>
<h1>${whatOf(schedule)} ${stateMark(state)}</h1>
<p>${whenSentence(schedule)}${since === undefined ? undefined : ` ${BEGAN[state] ?? 'Since'} ${duration(Math.max(0, seeing.now - since) / 1000)} ago.`}</p>
${when(!seeing.isScheduled && schedule.removedAt === null, NOBODY)}
${whatToDo(schedule, state)}
${actLinks(schedule, session)}
<section><h2>Next</h2>${nextList(schedule, seeing.now)}</section>
<section><h2>Last runs</h2>${runs.length === 0 ? html`<p class="empty">None yet: the first one begins at the next moment above.</p>` : runTable(runs, seeing, { ofOne: true })}
${runs.length === LISTED ? html`<p class="pages"><a href="${addressOf({ scheduleId })}">All runs of this schedule</a></p>` : undefined}</section>
<section><h2>Facts</h2>${factList(schedule, seeing.now)}</section>
<p class="same">The same on the command line: ${command('tokenmill', 'schedule', 'runs', scheduleId)}</p>`
}

/** What began at the moment of a state. */
const BEGAN: Partial<Record<ShownState, string>> = {
  MISSED: 'It was due',
  LATE: 'A run was due',
  FAILED: 'A run failed',
  PAUSED: 'It was paused',
  REMOVED: 'It was removed',
}

function whenSentence(schedule: SeenSchedule): string {
  const text = `Runs ${whenOf(schedule)}`
  return schedule.kind === 'report'
    ? `${text}, about the day before (UTC).`
    : `${text}, for tokens whose expiry date is before that day.`
}

function whatToDo({ pausedAt, failedReason }: SeenSchedule & Trouble, state: string): Html | undefined {
  if (state === 'MISSED')
    return html`<p class="effect">It was due, and no scheduler began it. Start a scheduler: it makes up for the last seven days by itself.</p>`
  if (state === 'LATE') return html`<p class="effect">A run has not ended in time. Its page says what it waits for.</p>`
  if (state === 'FAILED' && failedReason !== null)
    return html`<p class="effect">${reasonOf(failedReason)} ${nextStepOf(failedReason)}</p>`
  if (pausedAt !== null)
    return html`<p class="effect">Somebody paused it, so no run begins. The audit says who and why. When it is resumed, it makes up for up to seven days that it missed.</p>`
  return undefined
}

function actLinks(schedule: SeenSchedule, session: Shown['session']): Html | undefined {
  const possible = permittedOf(SCHEDULE_ACTS, session).filter(name => scheduleRefusal(name, schedule) === undefined)
  if (possible.length === 0) return undefined
  const link = (name: ScheduleAction) =>
    html`<li><a class="button" href="${path`/reports/schedules/${schedule.scheduleId}/${wordOf(name)}`}">${SCHEDULE_ACTS[name].link}…</a></li>`
  return html`<ul class="acts">${possible.map(link)}</ul>`
}

function nextList(schedule: SeenSchedule, now: number): Html {
  if (schedule.removedAt !== null) return html`<p class="empty">It was removed: no run begins any more.</p>`
  if (schedule.pausedAt !== null)
    return html`<p class="empty">It is paused: no run begins until somebody resumes it.</p>`
  if (!isZone(schedule.zone))
    return html`<p class="empty">${unknownZoneOf(schedule)} Remove it with ${command('tokenmill', 'schedule', 'remove', schedule.scheduleId)} and add another one.</p>`
  const due = nextDues(schedule, now, NEXT)
  return html`<ul class="upcoming">${due.map(({ businessDate, dueAt }) => html`<li>${moment(dueAt)} UTC${schedule.kind === 'report' ? html` <span class="muted">about ${businessDate}</span>` : undefined}</li>`)}</ul>`
}

function factList(schedule: SeenSchedule, now: number): Html {
  const { kind, clientId, clientName, entityId, mimeType, parameters, createdAt, pausedAt, resumedAt, removedAt } =
    schedule
  const at = (ms: number | null) => (ms === null ? undefined : html`${moment(ms)} UTC`)
  const set = Object.entries(parameters).map(([name, value]) => `${name}=${shown(String(value))}`)
  const facts: [string, Value][] = [
    ['Schedule', id(schedule.scheduleId)],
    ['Client', clientId === null ? undefined : html`${clientName ?? ''} ${id(clientId)}`],
    ['Entity', entityId === null ? (kind === 'report' ? 'every entity of the client' : undefined) : id(entityId)],
    ['Format', mimeType === null ? undefined : formatOf(mimeType)],
    ['Parameters', set.length === 0 ? undefined : set.join(', ')],
    ['Added', at(createdAt)],
    ['Paused', at(pausedAt)],
    ['Last resumed', at(resumedAt)],
    ['Removed', at(removedAt)],
    ['Read', at(now)],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** The latest day that has ended: the one that somebody runs most likely. */
export const lastDay = (now: number) => dayAfter(dateOf(now), -1)
