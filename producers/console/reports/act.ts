// Acts on a schedule: pause, resume, and run a day now.
import { datesWithoutRun } from '../../../src/job/schedule/business-dates.ts'
import { type ScheduleAction, scheduleRefusal } from '../../../src/job/schedule/refusal.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import { SCHEDULE_ACTS, seenOfRuns, seenOfSchedule } from '../../../src/job/system/schedule-act.ts'
import type { SeenDateRun, SeenSchedule } from '../../../src/store/console/schedules.ts'
import * as seenSchedules from '../../../src/store/console/schedules.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { actRoutes } from '../acts/act-routes.ts'
import { type ActSubject, type Asking, actIn, type ShownAct, wordOf } from '../acts/subject.ts'
import { command, count, id } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { stateMark } from '../state-mark.ts'
import { isDay } from './filters.ts'
import { schedulePath } from './list.ts'
import { lastDay, scheduleOf } from './schedule.ts'
import { dates, unknownZoneOf, whatOf, whenOf } from './text.ts'

/** The runs of one day: one for each entity of the client. */
const RUNS_MAX = 10_000

const SCHEDULE: ActSubject = {
  route: '/reports/schedules/:id/:act',
  at: 'reports',
  takesQuery: true,

  async show(asking) {
    const found = await findSchedule(asking)
    if (!found) return undefined
    const { schedule, act } = found
    const { deps, session, asked } = asking
    const now = deps.clock()
    if (act !== 'schedule.run') return shownChange(schedule, act, now)
    const date = isDay(asked.given['date']) ? asked.given['date'] : lastDay(now)
    const { scheduleId } = schedule
    const sight = sightOf(session.entities)
    const [runs, entities] = await Promise.all([
      seenSchedules.listOfDate(sight, deps.store, { scheduleId, date, limit: RUNS_MAX }),
      seenSchedules.listEntities(sight, deps.store, scheduleId),
    ])
    return shownRun(schedule, { date, runs, entities, isEnded: date <= lastDay(now) })
  },

  async sign(asking) {
    const found = await findSchedule(asking)
    if (!found) return undefined
    const { schedule, act } = found
    const { date } = asking.asked.given
    const isRun = act === 'schedule.run'
    if (isRun && !isDay(date)) return undefined
    const parameters = isRun ? { date } : {}
    return { act, subject: schedule.scheduleId, parameters, batchNo: null }
  },
}

async function findSchedule({
  deps,
  session,
  asked,
}: Asking): Promise<{ schedule: SeenSchedule; act: ScheduleAction } | undefined> {
  const act = actIn(SCHEDULE_ACTS, 'schedule', asked)
  const schedule = act && (await scheduleOf(deps, session, asked.params['id'] ?? ''))
  return act && schedule && { schedule, act }
}

function named(schedule: SeenSchedule): Html {
  return html`<p>${whatOf(schedule)}, ${whenOf(schedule)} ${id(schedule.scheduleId)}</p>`
}

function aboutPage(schedule: SeenSchedule, act: ScheduleAction) {
  return {
    act,
    to: path`/reports/schedules/${schedule.scheduleId}/${wordOf(act)}`,
    back: { to: schedulePath(schedule), text: 'Back to the schedule' },
  }
}

function shownChange(schedule: SeenSchedule, act: Exclude<ScheduleAction, 'schedule.run'>, now: number): ShownAct {
  const instead = insteadOf(act, schedule)
  return {
    ...aboutPage(schedule, act),
    shown: named(schedule),
    counted: 'this schedule',
    effect: instead === undefined ? effectOf(act, schedule, now) : undefined,
    instead: instead ?? '',
    seen: seenOfSchedule(schedule),
    fields: {},
    command: command('tokenmill', 'schedule', wordOf(act), schedule.scheduleId),
  }
}

interface Day {
  date: string
  runs: readonly SeenDateRun[]
  entities: readonly string[]
  isEnded: boolean
}

function shownRun(schedule: SeenSchedule, day: Day): ShownAct {
  const { date, runs } = day
  const why = insteadOfRun(schedule, day)
  return {
    ...aboutPage(schedule, 'schedule.run'),
    shown: html`${named(schedule)}
<form class="filter" method="get" action="${path`/reports/schedules/${schedule.scheduleId}/run`}"><div><label for="date">Day (UTC)</label><input id="date" name="date" type="date" value="${date}" required></div><div class="send"><button type="submit">Show this day</button></div></form>
${runs.length === 0 ? undefined : html`<p>${date}: ${statesOf(runs)}</p>`}`,
    counted: `${date} now`,
    effect: why === undefined ? effectOfRun(schedule, day) : undefined,
    instead: why ?? '',
    seen: seenOfRuns(runs),
    fields: { date },
    command: command('tokenmill', 'schedule', 'run', schedule.scheduleId, date),
  }
}

/** `FAILED`, with a number where there are several. */
function statesOf(runs: readonly SeenDateRun[]): Html[] {
  const states = [...new Set(runs.map(({ state }) => state))]
  return states.map(state => {
    const n = runs.filter(run => run.state === state).length
    return html`${stateMark(state)}${runs.length === 1 ? ' ' : ` ${count(n)} `}`
  })
}

/** How many entities have no run of the day. */
function missingOf({ runs, entities }: Pick<Day, 'runs' | 'entities'>): number {
  const made = new Set(runs.map(({ entityId }) => entityId))
  return entities.filter(entity => !made.has(entity)).length
}

const isFailed = ({ state }: SeenDateRun) => state === 'FAILED'
const isOpen = ({ state }: SeenDateRun) => state !== 'FAILED' && state !== 'SUCCEEDED'
const made = (n: number) => (n === 1 ? '1 run' : `${count(n)} runs`)

function insteadOfRun(schedule: SeenSchedule, { date, runs, entities, isEnded }: Day): string | undefined {
  const instead = insteadOf('schedule.run', schedule)
  if (instead !== undefined) return instead
  if (!isEnded) return `${date} has not ended yet (UTC): its run can be made from midnight on.`
  if (entities.length === 0) return 'The client of this schedule acts for no entity, so there is nothing to run for.'
  if (runs.some(isFailed) || missingOf({ runs, entities }) > 0) return undefined
  if (runs.some(isOpen)) return `A run of ${date} is under way already. Wait until it ends.`
  return `${date} was run, and it ended well. A report is made anew by a request: tokenmill report request --refresh.`
}

function effectOfRun({ kind }: SeenSchedule, { date, runs, entities }: Day): string {
  const failed = runs.filter(isFailed).length
  const missing = missingOf({ runs, entities })
  const parts = [
    ...(missing > 0 ? [`${made(missing)} of ${date} ${missing === 1 ? 'is' : 'are'} made`] : []),
    ...(failed > 0 ? [`${made(failed)} of ${date} that failed ${failed === 1 ? 'is' : 'are'} made again`] : []),
  ]
  const what = kind === 'report' ? 'Workers make the report then.' : 'Workers suspend the tokens then.'
  return `${parts.join(', and ')}: a scheduler sends ${missing + failed === 1 ? 'it' : 'them'} within a minute. ${what}`
}

export const scheduleActRoutes = actRoutes(SCHEDULE)

/** Why nothing would happen; undefined: something would. */
function insteadOf(name: ScheduleAction, schedule: SeenSchedule): string | undefined {
  const refused = scheduleRefusal(name, schedule)
  if (refused === 'no_schedule') return 'It was removed, so nothing can be done to it.'
  if (refused === 'no_report')
    return 'Tokens past their date are always suspended: only schedules of reports can be paused.'
  return refused && SCHEDULE_ACTS[name].instead
}

/** What will happen to a schedule that is paused or resumed. */
function effectOf(name: Exclude<ScheduleAction, 'schedule.run'>, schedule: SeenSchedule, now: number): string {
  if (name === 'schedule.pause')
    return 'No further run of this schedule begins until somebody resumes it. A run that was sent already goes on, and runs that wait begin when it is resumed.'
  if (!isZone(schedule.zone)) return unknownZoneOf(schedule)
  const missed = datesWithoutRun({ ...schedule, pausedAt: null }, now).length
  const missing =
    missed === 0
      ? 'It missed no day.'
      : `${dates(missed)} that it missed ${missed === 1 ? 'is' : 'are'} made within a minute.`
  return `This schedule runs again at its time. ${missing} Runs that had not begun when it was paused begin, too.`
}
