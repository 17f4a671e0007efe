// What an operator does to a schedule: makes it run for a date now. Schedulers send the run, as they send those of a night.
import * as clients from '../store/access/clients.ts'
import type { Db, Store } from '../store/pool.ts'
import * as runs from '../store/report/schedule-runs.ts'
import * as schedules from '../store/report/schedules.ts'
import { type By, perform, type Verdict } from './act.ts'

/** `stands`: the date has runs, and none of them failed. `not_ended`: the date is still going on. */
export type RunRefusal = 'no_schedule' | 'not_ended' | 'client_revoked' | 'role_missing' | 'entity_forbidden' | 'stands'

export interface RunPlan {
  scheduleId: string
  /** `YYYY-MM-DD`. */
  businessDate: string
  /** Those of the date, due now. */
  wanted: readonly runs.NewRun[]
  /** Those that came due and that no scheduler has made yet. A later date's run would make it pass over them. */
  due: readonly runs.NewRun[]
}

const DAY_MS = 86_400_000

/** Answers how many runs were made or, where they had failed, opened again. */
export function runSchedule(
  store: Store,
  { scheduleId, businessDate, wanted, due }: RunPlan,
  by: By,
  now: number,
): Promise<Verdict<{ runs: number }, RunRefusal>> {
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
  const owner = await clients.find(db, schedule.clientId)
  if (!owner || owner.revokedAt !== null) return 'client_revoked'
  if (!owner.roles.includes('REPORT_REQUEST')) return 'role_missing'
  return wanted.every(({ entityId }) => owner.entities.includes(entityId)) ? undefined : 'entity_forbidden'
}
