// `tokenmill schedule runs` and `schedule run`: shows how the runs of schedules ended and why, and runs a schedule for
// a date now.
import { dueRuns, entitiesOf, runsOn } from '../../../producers/schedule/new-runs.ts'
import { type RunRefusal, runSchedule } from '../../../src/acts/schedule.ts'
import { systemClock } from '../../../src/clock.ts'
import { FAULTS, REASONS } from '../../../src/errors.ts'
import { CATALOGUE } from '../../../src/job/catalogue.ts'
import type { Db } from '../../../src/store/pool.ts'
import * as runs from '../../../src/store/report/schedule-runs.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal, table } from '../../terminal.ts'

type ListOptions = JsonOption & { state?: runs.RunState; limit: number }

const ROLE_MISSING = `the schedule's client lacks the role ${CATALOGUE.report.role}`
/** Texts for reasons that aren't in the tables of src/errors.ts. */
const RUN_REASONS: Record<string, string> = {
  role_missing: ROLE_MISSING,
  client_revoked: "the schedule's client is revoked",
  schedule_removed: 'the schedule was removed',
  tokens_failed: 'some tokens could not be suspended; the next night finds them again',
  unanswered: 'no worker answered for seven days',
  fault: 'the attempt failed; a worker’s log line says why',
}

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
    reason_text: run.reason === null ? undefined : textOf(run.reason),
  }
}

function textOf(reason: string): string | undefined {
  const known: Record<string, { text: string }> = { ...FAULTS, ...REASONS }
  return RUN_REASONS[reason] ?? known[reason]?.text
}

function reasonText(reason: string): string {
  const text = textOf(reason)
  return text === undefined ? reason : `${reason}: ${text}`
}

const NO_SCHEDULE = 'There is no such schedule; `tokenmill schedule list` lists them.'

const REFUSED: Record<Exclude<RunRefusal, 'stands'>, string> = {
  no_schedule: NO_SCHEDULE,
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
    const schedule = await schedules.find(store, scheduleId)
    if (!schedule) throw new Stop(NO_SCHEDULE)
    const now = systemClock()
    const entities = await entitiesOf(schedule, { store })
    const plan = {
      scheduleId,
      businessDate,
      wanted: runsOn(schedule, { businessDate, dueAt: now }, entities),
      due: dueRuns(schedule, entities, now),
    }
    const by = await byOf({ action: 'schedule.run', subject: scheduleId }, options, store)
    const verdict = await runSchedule(store, plan, by, now)
    if ('refused' in verdict) {
      const { refused } = verdict
      throw new Stop(refused === 'stands' ? await standing(store, scheduleId, businessDate) : REFUSED[refused])
    }
    const made = await runs.list(store, { scheduleId, businessDate, limit: entities.length })
    print(terminal, options, made.map(shownRun), madeText(verdict.done.runs, scheduleId, businessDate))
  })
}

function madeText(count: number, scheduleId: string, businessDate: string): string {
  const due = count === 1 ? '1 run' : `${count} runs`
  const [are, them, howTheyEnd] = count === 1 ? ['is', 'it', 'how it ends'] : ['are', 'them', 'how they end']
  return `${due} of ${businessDate} ${are} due now; a scheduler sends ${them} within a minute. \`tokenmill schedule runs ${scheduleId}\` shows ${howTheyEnd}.`
}

async function standing(db: Db, scheduleId: string, businessDate: string): Promise<string> {
  const [first, ...others] = await runs.list(db, { scheduleId, businessDate, limit: 100 })
  if (!first) return `The schedule has no entity to run for on ${businessDate}.`
  const report = first.reportUid === null ? '' : `; its report is ${first.reportUid}`
  const state =
    others.length === 0 ? ` and is ${first.state}${report}` : `, one for each of ${others.length + 1} entities`
  return `A run of ${businessDate} stands already${state}. Only failed runs are made again; \`tokenmill report request --refresh\` makes a report anew.`
}
