// Computes the runs that a schedule should have: one per date and entity. It writes none.
import { type DueDate, datesWithoutRun } from '../../job/schedule/business-dates.ts'
import { receiptOf } from '../../job/schedule/run-job.ts'
import * as clients from '../access/clients.ts'
import type { Db } from '../pool.ts'
import { type NewRun, NO_ENTITY } from './schedule-runs.ts'
import type { Schedule } from './schedules.ts'

/**
 * The entities of a schedule: its own; without one all entities that its client has now. The token sweep has only
 * NO_ENTITY.
 */
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

/** The runs that became due after the schedule's newest date. */
export function dueRuns(schedule: Schedule, entities: readonly string[], now: number): NewRun[] {
  return datesWithoutRun(schedule, now).flatMap(date => runsOn(schedule, date, entities))
}
