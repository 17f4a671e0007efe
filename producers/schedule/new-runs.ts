// The runs that a schedule ought to have: one for each date and entity. It writes none; src/store and src/acts do.
import * as clients from '../../src/store/access/clients.ts'
import type { Db } from '../../src/store/pool.ts'
import { type NewRun, NO_ENTITY } from '../../src/store/report/schedule-runs.ts'
import type { Schedule } from '../../src/store/report/schedules.ts'
import { type DueDate, dueDates } from './business-dates.ts'
import { receiptOf } from './report-run.ts'

/** The entities of a schedule of reports, as its client has them now; of the sweep of tokens the one that is none. */
export async function entitiesOf(schedule: Schedule, { store }: { store: Db }): Promise<readonly string[]> {
  if (schedule.kind === 'token-expiry') return [NO_ENTITY]
  if (schedule.entityId !== null) return [schedule.entityId]
  return (await clients.find(store, schedule.clientId))?.entities ?? []
}

export function runsOn(schedule: Schedule, { businessDate, dueAt }: DueDate, entities: readonly string[]): NewRun[] {
  return entities.map(entityId => {
    const key = { scheduleId: schedule.scheduleId, businessDate, entityId }
    return { ...key, dueAt, receiptId: schedule.kind === 'report' ? receiptOf(key, schedule) : null }
  })
}

/** The runs that came due since the schedule's newest. */
export function dueRuns(schedule: Schedule, entities: readonly string[], now: number): NewRun[] {
  const due = dueDates(schedule, schedule.createdAt, schedule.newest, now)
  // The sweep of a date finds the tokens that earlier sweeps left.
  const wanted = schedule.kind === 'token-expiry' ? due.slice(-1) : due
  return wanted.flatMap(date => runsOn(schedule, date, entities))
}
