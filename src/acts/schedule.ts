// What an operator does to schedules: adds one, removes one, pauses and resumes one, runs one now for a date. A scheduler process
// sends the job of such a run, as it does for the nightly runs. Commands and workers call the same functions.
import { lacks } from '../job/envelope/roles.ts'
import { reportKind } from '../job/report.ts'
import { CATCH_UP_DATES, datesWithoutRun } from '../job/schedule/business-dates.ts'
import { type ScheduleAction, scheduleRefusal } from '../job/schedule/refusal.ts'
import * as clients from '../store/access/clients.ts'
import type { Db, Store } from '../store/pool.ts'
import { dueRuns, entitiesOf, runsOn } from '../store/report/new-runs.ts'
import * as runs from '../store/report/schedule-runs.ts'
import * as schedules from '../store/report/schedules.ts'
import { type ActResult, type By, type Decided, perform } from './act.ts'

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

export type ScheduleRefusal =
  | 'no_schedule'
  /** It isn't one of reports: tokens past their date are always suspended. */
  | 'no_report'
  | 'paused'
  | 'not_paused'
  /** The business date isn't over yet. */
  | 'not_ended'
  /** A run of the date is under way. */
  | 'running'
  /** The date has runs, and none of them failed; or there is no entity to run for. */
  | 'stands'
  | OwnerRefusal

/** A schedule whose row is locked, and what else the act needs. */
interface Acted {
  /** Undefined: there is none. */
  schedule: schedules.Schedule | undefined
  /** The reported day (UTC), `YYYY-MM-DD`; only to run it. */
  businessDate: string
  /** ms since the epoch. */
  now: number
}

interface Done {
  /** How many runs were made, or reopened because they had failed; after `resume`, how many dates were missed. */
  runs: number
}

type ScheduleResult = ActResult<Done, ScheduleRefusal>
type DecidedSchedule = Decided<Done, ScheduleRefusal>

/** Pauses a schedule: no further run of it begins. A run that is under way goes on. */
export function pauseSchedule(store: Store, scheduleId: string, by: By, now: number): Promise<ScheduleResult> {
  return onSchedule(store, 'schedule.pause', { scheduleId, businessDate: '', now }, by)
}

/** Resumes a schedule. What it missed, and runs that had not begun when it was paused, are due at once: the last seven dates. */
export function resumeSchedule(store: Store, scheduleId: string, by: By, now: number): Promise<ScheduleResult> {
  return onSchedule(store, 'schedule.resume', { scheduleId, businessDate: '', now }, by)
}

/** Makes the runs of a date, or reopens those that failed. They are due at once. */
export function runSchedule(
  store: Store,
  { scheduleId, businessDate }: { scheduleId: string; businessDate: string },
  by: By,
  now: number,
): Promise<ScheduleResult> {
  return onSchedule(store, 'schedule.run', { scheduleId, businessDate, now }, by)
}

function onSchedule(
  store: Store,
  action: ScheduleAction,
  { scheduleId, ...act }: Omit<Acted, 'schedule'> & { scheduleId: string },
  by: By,
): Promise<ScheduleResult> {
  return perform(store, { action, subject: scheduleId }, by, async db =>
    SCHEDULE_DEEDS[action](db, { schedule: await schedules.lock(db, scheduleId), ...act }),
  )
}

async function pauseLocked(db: Db, { schedule }: Acted): Promise<DecidedSchedule> {
  const entityId = ownerOf(schedule)
  if (!schedule) return { refused: 'no_schedule' }
  const refused = scheduleRefusal('schedule.pause', schedule)
  if (refused) return { refused, entityId }
  await schedules.pause(db, schedule.scheduleId)
  return { done: { runs: 0 }, detail: {}, entityId }
}

async function resumeLocked(db: Db, { schedule, now }: Acted): Promise<DecidedSchedule> {
  const entityId = ownerOf(schedule)
  if (!schedule) return { refused: 'no_schedule' }
  const refused = scheduleRefusal('schedule.resume', schedule)
  if (refused) return { refused, entityId }
  await schedules.resume(db, schedule.scheduleId, now)
  await runs.resume(db, schedule.scheduleId, { since: now - CATCH_UP_DATES * DAY_MS, now })
  const missed = datesWithoutRun({ ...schedule, pausedAt: null }, now).length
  return { done: { runs: missed }, detail: { missed }, entityId }
}

async function runLocked(db: Db, { schedule, businessDate, now }: Acted): Promise<DecidedSchedule> {
  const entityId = ownerOf(schedule)
  if (!schedule) return { refused: 'no_schedule' }
  const entities = await entitiesOf(schedule, { store: db })
  const refused = await runRefusal(db, { schedule, businessDate, now }, entities)
  if (refused) return { refused, entityId }
  const wanted = runsOn(schedule, { businessDate, dueAt: now }, entities)
  const made = await runs.insert(db, wanted)
  const opened = await runs.reopen(db, wanted, now)
  if (made + opened === 0) {
    const known = await runs.list(db, { scheduleId: schedule.scheduleId, businessDate, limit: wanted.length })
    return { refused: known.some(({ endedAt }) => endedAt === null) ? 'running' : 'stands', entityId }
  }
  // Runs that are due and that no scheduler has made yet. The scheduler skips due runs older than the newest run.
  await runs.insert(db, dueRuns(schedule, entities, now))
  return { done: { runs: made + opened }, detail: { date: businessDate, runs: made + opened }, entityId }
}

/** The same acts by name, for a caller that has begun the transaction and locked the schedule. */
export const SCHEDULE_DEEDS = {
  'schedule.pause': pauseLocked,
  'schedule.resume': resumeLocked,
  'schedule.run': runLocked,
} as const satisfies Record<ScheduleAction, (db: Db, acted: Acted) => Promise<DecidedSchedule>>

const DAY_MS = 86_400_000

async function runRefusal(
  db: Db,
  { schedule, businessDate, now }: Acted & { schedule: schedules.Schedule },
  entities: readonly string[],
): Promise<ScheduleRefusal | undefined> {
  // While it is paused, a run of a later date would let the scheduler skip those that are missed.
  const refused = scheduleRefusal('schedule.run', schedule)
  if (refused) return refused
  if (Date.parse(businessDate) + DAY_MS > now) return 'not_ended'
  return schedule.kind === 'report' ? refusalOfOwner(db, schedule.clientId, entities) : undefined
}

/** Whose schedule it is, if it is one entity's. */
function ownerOf(schedule: schedules.Schedule | undefined): string | null {
  return schedule?.kind === 'report' ? schedule.entityId : null
}

async function refusalOfOwner(
  db: Db,
  clientId: string,
  entities: readonly string[],
): Promise<OwnerRefusal | undefined> {
  const owner = await clients.find(db, clientId)
  if (!owner || owner.revokedAt !== null) return 'client_revoked'
  if (lacks(owner.roles, reportKind, {}).length > 0) return 'role_missing'
  return entities.every(entity => owner.entities.includes(entity)) ? undefined : 'entity_forbidden'
}
