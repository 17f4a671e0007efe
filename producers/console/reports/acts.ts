// What people may do to a schedule, as words: which roles may, when it is possible, and what will happen. A worker decides it again by
// its own rules.
import { datesWithoutRun } from '../../../src/job/schedule/business-dates.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import type { SeenSchedule } from '../../../src/store/console/schedules.ts'
import type { ActWords } from '../acts/subject.ts'
import { dates, unknownZoneOf } from './text.ts'

interface ScheduleAct extends ActWords {
  /** On the page of the schedule. */
  link: string
}

const MAY = ['OPERATOR', 'ADMIN'] as const

export const SCHEDULE_ACTS = {
  run: { act: 'schedule.run', verb: 'Run', link: 'Run a day now', roles: MAY, isFinal: false },
  pause: { act: 'schedule.pause', verb: 'Pause', link: 'Pause', roles: MAY, isFinal: false },
  resume: { act: 'schedule.resume', verb: 'Resume', link: 'Resume', roles: MAY, isFinal: false },
} as const satisfies Record<string, ScheduleAct>

export type ScheduleActName = keyof typeof SCHEDULE_ACTS

export function isScheduleAct(name: string): name is ScheduleActName {
  return Object.hasOwn(SCHEDULE_ACTS, name)
}

export function possibleIn(name: ScheduleActName, { kind, removedAt, pausedAt }: SeenSchedule): boolean {
  if (removedAt !== null) return false
  if (name === 'run') return pausedAt === null
  return kind === 'report' && (name === 'resume') === (pausedAt !== null)
}

/** Why nothing would happen. */
export function insteadOf(name: ScheduleActName, { kind, removedAt, pausedAt }: SeenSchedule): string {
  if (removedAt !== null) return 'It was removed, so nothing can be done to it.'
  if (name !== 'run' && kind !== 'report')
    return 'Tokens past their date are always suspended: only schedules of reports can be paused.'
  if (name === 'run') return 'It is paused, so nothing runs. Resume it first.'
  return pausedAt === null ? 'It is not paused, so there is nothing to resume.' : 'It is paused already.'
}

/** What will happen to a schedule that is paused or resumed. */
export function effectOf(name: 'pause' | 'resume', schedule: SeenSchedule, now: number): string {
  if (name === 'pause')
    return 'No further run of this schedule begins until somebody resumes it. A run that was sent already goes on, and runs that wait begin when it is resumed.'
  if (!isZone(schedule.zone)) return unknownZoneOf(schedule)
  const missed = datesWithoutRun({ ...schedule, pausedAt: null }, now).length
  const missing =
    missed === 0
      ? 'It missed no day.'
      : `${dates(missed)} that it missed ${missed === 1 ? 'is' : 'are'} made within a minute.`
  return `This schedule runs again at its time. ${missing} Runs that had not begun when it was paused begin, too.`
}
