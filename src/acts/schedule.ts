// What an operator does to schedules: adds one, removes one, runs one now for a date. A scheduler process sends the job
// of such a run, as it does for the nightly runs.
import * as clients from '../store/access/clients.ts'
import type { Db, Store } from '../store/pool.ts'
import * as runs from '../store/report/schedule-runs.ts'
import * as schedules from '../store/report/schedules.ts'
import { type ActResult, type By, perform } from './act.ts'

/** Why no report is made for a client. */
export type OwnerRefusal = 'client_revoked' | 'role_missing' | 'entity_forbidden'

/** Adds a schedule. Its first run is at the next time of day that the schedule names. */
export function addSchedule(
  store: Store,
  schedule: schedules.NewSchedule,
  by: By,
): Promise<ActResult<schedules.NewSchedule, OwnerRefusal>> {
  const { scheduleId, clientId, entityId, ...plan } = schedule
  return perform(store, { action: 'schedule.add', subject: scheduleId }, by, async db => {
    const refused = await refusalOfOwner(db, clientId, entityId === null ? [] : [entityId])
    if (refused) return { refused }
    await schedules.insert(db, schedule)
    return { done: schedule, detail: { clientId, entityId, ...plan } }
  })
}

/**
 * Removes a schedule; reports that it made stay. Refuses with `no_schedule` if there is none, or if it isn't a schedule
 * of reports.
 */
export function removeSchedule(
  store: Store,
  scheduleId: string,
  by: By,
): Promise<ActResult<{ scheduleId: string }, 'no_schedule'>> {
  return perform<{ scheduleId: string }, 'no_schedule'>(
    store,
    { action: 'schedule.remove', subject: scheduleId },
    by,
    async db =>
      (await schedules.remove(db, scheduleId)) ? { done: { scheduleId }, detail: {} } : { refused: 'no_schedule' },
  )
}

/** `stands`: the date has runs, and none of them failed. `not_ended`: the business date isn't over yet. */
export type RunRefusal = 'no_schedule' | 'not_ended' | 'stands' | OwnerRefusal

export interface RunPlan {
  scheduleId: string
  /** `YYYY-MM-DD`. */
  businessDate: string
  /** The runs of `businessDate` that should exist; new ones are due at once. */
  wanted: readonly runs.NewRun[]
  /**
   * Runs that are due and that no scheduler has made yet. They are made too, because the scheduler skips due runs older
   * than the newest run.
   */
  due: readonly runs.NewRun[]
}

const DAY_MS = 86_400_000

/** Returns how many runs were made, or reopened because they had failed. */
export function runSchedule(
  store: Store,
  { scheduleId, businessDate, wanted, due }: RunPlan,
  by: By,
  now: number,
): Promise<ActResult<{ runs: number }, RunRefusal>> {
  return perform<{ runs: number }, RunRefusal>(store, { action: 'schedule.run', subject: scheduleId }, by, async db => {
    const refused = await refusalOf(db, { scheduleId, businessDate, wanted }, now)
    if (refused) return { refused }
    const made = await runs.insert(db, wanted)
    const opened = await runs.reopen(db, wanted, now)
    if (made + opened === 0) return { refused: 'stands' }
    await runs.insert(db, due)
    return { done: { runs: made + opened }, detail: { date: businessDate, runs: made + opened } }
  })
}

async function refusalOf(
  db: Db,
  { scheduleId, businessDate, wanted }: Omit<RunPlan, 'due'>,
  now: number,
): Promise<RunRefusal | undefined> {
  const schedule = await schedules.find(db, scheduleId)
  if (!schedule || schedule.removedAt !== null) return 'no_schedule'
  if (Date.parse(businessDate) + DAY_MS > now) return 'not_ended'
  if (schedule.kind !== 'report') return undefined
  return refusalOfOwner(
    db,
    schedule.clientId,
    wanted.map(({ entityId }) => entityId),
  )
}

async function refusalOfOwner(
  db: Db,
  clientId: string,
  entities: readonly string[],
): Promise<OwnerRefusal | undefined> {
  const owner = await clients.find(db, clientId)
  if (!owner || owner.revokedAt !== null) return 'client_revoked'
  if (!owner.roles.includes('REPORT_REQUEST')) return 'role_missing'
  return entities.every(entity => owner.entities.includes(entity)) ? undefined : 'entity_forbidden'
}
