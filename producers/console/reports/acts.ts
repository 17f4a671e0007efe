// What people may do to a schedule, in words: why it isn't possible, and what will happen.
import { datesWithoutRun } from '../../../src/job/schedule/business-dates.ts'
import { type ScheduleAction, scheduleRefusal } from '../../../src/job/schedule/refusal.ts'
import { isZone } from '../../../src/job/schedule/zone-time.ts'
import { SCHEDULE_ACTS } from '../../../src/job/system/schedule-act.ts'
import type { SeenSchedule } from '../../../src/store/console/schedules.ts'
import { dates, unknownZoneOf } from './text.ts'

/** Why nothing would happen; undefined: something would. */
export function insteadOf(name: ScheduleAction, schedule: SeenSchedule): string | undefined {
  const refused = scheduleRefusal(name, schedule)
  if (refused === 'no_schedule') return 'It was removed, so nothing can be done to it.'
  if (refused === 'no_report')
    return 'Tokens past their date are always suspended: only schedules of reports can be paused.'
  return refused && SCHEDULE_ACTS[name].instead
}

/** What will happen to a schedule that is paused or resumed. */
export function effectOf(name: Exclude<ScheduleAction, 'schedule.run'>, schedule: SeenSchedule, now: number): string {
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
