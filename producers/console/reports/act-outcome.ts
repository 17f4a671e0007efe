// An act on a schedule that was sent, and how the schedule is now.
import { ScheduleRunParameters } from '../../../src/job/system/schedule-act.ts'
import type { SeenSchedule } from '../../../src/store/console/schedules.ts'
import * as seenSchedules from '../../../src/store/console/schedules.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { DescribeSent } from '../acts/subject.ts'
import type { ConsoleDeps } from '../deps.ts'
import { id } from '../figures.ts'
import { html } from '../html.ts'
import { type ShownState, stateMark } from '../state-mark.ts'
import { schedulePath, seeingOf } from './list.ts'
import { scheduleOf } from './schedule.ts'
import { stateOfSchedule, troubleSince } from './state.ts'
import { whatOf } from './text.ts'

export const sentScheduleAct: DescribeSent = async ({ deps, session, act: { request } }) => {
  const schedule = await scheduleOf(deps, session, String(request['subject']))
  const isRun = request['act'] === 'schedule.run'
  const run = isRun ? ScheduleRunParameters.safeParse(request['parameters']).data : undefined
  const shown = schedule && (await stateNow(deps, session, schedule))
  return {
    at: 'reports',
    facts: [
      [
        'Schedule',
        html`${schedule && whatOf(schedule)} ${id(String(request['subject']))}${isRun || shown === undefined ? undefined : html` ${stateMark(shown)} now`}`,
      ],
      ...(run ? ([['Day', html`${run.date}`]] as const) : []),
    ],
    back: schedule
      ? html`<a href="${schedulePath(schedule)}">Back to the schedule</a>`
      : html`<a href="/reports">Reports</a>`,
    done:
      run &&
      'A worker has written it into the audit. A scheduler sends the run within a minute; the page of the schedule shows how it ends.',
  }
}

async function stateNow(
  deps: ConsoleDeps,
  { entities }: Pick<LiveSession, 'entities'>,
  schedule: SeenSchedule,
): Promise<ShownState> {
  const sight = sightOf(entities)
  const seeing = await seeingOf(deps, sight)
  const asked = { scheduleId: schedule.scheduleId, ...troubleSince(seeing) }
  return stateOfSchedule({ ...schedule, ...(await seenSchedules.findTrouble(sight, deps.store, asked)) }, seeing).state
}
