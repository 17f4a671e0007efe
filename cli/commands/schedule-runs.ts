// `tokenmill schedule runs` and `schedule run`: shows how the runs of schedules ended and why, and runs a schedule for
// a date now.
import { runReasonText } from '../../producers/schedule/run-reasons.ts'
import { pauseSchedule, resumeSchedule, runSchedule, type ScheduleRefusal } from '../../src/acts/schedule.ts'
import { systemClock } from '../../src/clock.ts'
import { reportKind } from '../../src/job/report.ts'
import type { Db } from '../../src/store/pool.ts'
import * as runs from '../../src/store/report/schedule-runs.ts'
import * as schedules from '../../src/store/report/schedules.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { openCommandStore, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { moment, print, say, type Terminal, table } from '../terminal.ts'

type ListOptions = JsonOption & { state?: runs.RunState; limit: number }

const ROLE_MISSING = `the schedule's client lacks the role ${reportKind.role}`
export function list(terminal: Terminal, scheduleId: string | undefined, options: ListOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    if (scheduleId !== undefined && !(await schedules.find(store, scheduleId))) throw new Stop(NO_SCHEDULE)
    const found = await runs.list(store, { scheduleId, state: options.state, limit: options.limit })
    const rows = found.map(run => [
      run.scheduleId,
      run.businessDate,
      run.entityId === runs.NO_ENTITY ? '-' : run.entityId,
      run.lateAt === null ? run.state : `${run.state} late`,
      moment(run.dueAt),
      moment(run.endedAt),
      run.reason === null ? '-' : reasonText(run.reason),
    ])
    const headings = ['SCHEDULE', 'DATE', 'ENTITY', 'STATE', 'DUE', 'ENDED', 'REASON']
    print(terminal, options, found.map(shownRun), table(headings, rows))
    if (found.length === options.limit) say(terminal, 'There may be more; --limit shows them.')
  })
}

export function shownRun(run: runs.Run): Record<string, unknown> {
  return {
    schedule_id: run.scheduleId,
    date: run.businessDate,
    ...(run.entityId === runs.NO_ENTITY ? {} : { entity_id: run.entityId }),
    state: run.state,
    due_at: moment(run.dueAt),
    ended_at: run.endedAt === null ? undefined : moment(run.endedAt),
    late: run.lateAt !== null,
    report_uid: run.reportUid ?? undefined,
    tokens: run.tokens ?? undefined,
    reason: run.reason ?? undefined,
    reason_text: run.reason === null ? undefined : runReasonText(run.reason),
  }
}

function reasonText(reason: string): string {
  const text = runReasonText(reason)
  return text === undefined ? reason : `${reason}: ${text}`
}

const NO_SCHEDULE = 'There is no such schedule; `tokenmill schedule list` lists them.'

const REFUSED: Record<Exclude<ScheduleRefusal, 'stands' | 'running'>, string> = {
  no_schedule: NO_SCHEDULE,
  no_report: 'Only schedules of reports can be paused: tokens past their date are always suspended.',
  paused: 'The schedule is paused; `tokenmill schedule resume` lets it run.',
  not_paused: 'The schedule is not paused.',
  not_ended: 'This date has not ended yet (UTC); its run can be made from midnight on.',
  client_revoked: 'No run is made: the schedule’s client is revoked.',
  role_missing: `No run is made: ${ROLE_MISSING}.`,
  entity_forbidden: 'No run is made: the schedule’s client does not act for its entity any more.',
}

export function run(
  terminal: Terminal,
  scheduleId: string,
  businessDate: string,
  options: JsonOption & OperatorOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    if (!(await schedules.find(store, scheduleId))) throw new Stop(NO_SCHEDULE)
    const by = await byOf({ action: 'schedule.run', subject: scheduleId }, options, store)
    const verdict = await runSchedule(store, { scheduleId, businessDate }, by, systemClock())
    if ('refused' in verdict) {
      const { refused } = verdict
      const stands = refused === 'stands' || refused === 'running'
      throw new Stop(stands ? await standing(store, scheduleId, businessDate) : REFUSED[refused])
    }
    const made = await runs.list(store, { scheduleId, businessDate, limit: ENTITIES_MAX })
    print(terminal, options, made.map(shownRun), madeText(verdict.done.runs, scheduleId, businessDate))
  })
}

const ENTITIES_MAX = 1_000

function madeText(count: number, scheduleId: string, businessDate: string): string {
  const due = count === 1 ? '1 run' : `${count} runs`
  const [are, them, howTheyEnd] = count === 1 ? ['is', 'it', 'how it ends'] : ['are', 'them', 'how they end']
  return `${due} of ${businessDate} ${are} due now; a scheduler sends ${them} within a minute. \`tokenmill schedule runs ${scheduleId}\` shows ${howTheyEnd}.`
}

async function standing(db: Db, scheduleId: string, businessDate: string): Promise<string> {
  const found = await runs.list(db, { scheduleId, businessDate, limit: ENTITIES_MAX })
  const [first] = found
  if (!first) return `The schedule has no entity to run for on ${businessDate}.`
  const open = found.find(({ endedAt }) => endedAt === null)
  if (open) return `A run of ${businessDate} is under way already: it is ${open.state}. Wait until it ends.`
  const report = first.reportUid === null ? '' : `; its report is ${first.reportUid}`
  const state = found.length === 1 ? ` and is ${first.state}${report}` : `, one for each of ${found.length} entities`
  return `A run of ${businessDate} stands already${state}. Only failed runs are made again; \`tokenmill report request --refresh\` makes a report anew.`
}

export function pause(terminal: Terminal, scheduleId: string, options: JsonOption & OperatorOptions): Promise<void> {
  return change(terminal, { scheduleId, action: 'schedule.pause' }, options)
}

export function resume(terminal: Terminal, scheduleId: string, options: JsonOption & OperatorOptions): Promise<void> {
  return change(terminal, { scheduleId, action: 'schedule.resume' }, options)
}

const CHANGES = { 'schedule.pause': pauseSchedule, 'schedule.resume': resumeSchedule } as const

function change(
  terminal: Terminal,
  { scheduleId, action }: { scheduleId: string; action: keyof typeof CHANGES },
  options: JsonOption & OperatorOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action, subject: scheduleId }, options, store)
    const verdict = await CHANGES[action](store, scheduleId, by, systemClock())
    if ('refused' in verdict) {
      const { refused } = verdict
      throw new Stop(refused === 'stands' || refused === 'running' ? NO_SCHEDULE : REFUSED[refused])
    }
    const isPaused = action === 'schedule.pause'
    const missed = verdict.done.runs
    const shown = { schedule_id: scheduleId, paused: isPaused, ...(isPaused ? {} : { missed }) }
    const text = isPaused
      ? `${scheduleId} is paused: no further run begins. A run that is under way goes on.`
      : `${scheduleId} goes on${missed === 0 ? '' : `; ${missed === 1 ? '1 missed date is' : `${missed} missed dates are`} due now`}.`
    print(terminal, options, shown, text)
  })
}
