// Schedules: tasks that run once a day. src/job/schedule computes which dates are due; each date is a run
// (schedule-runs.ts).
import type { MimeType, ReportType } from '../../job/report.ts'
import type { Db } from '../pool.ts'

interface Common {
  scheduleId: string
  /** `HH:MM`, local time in the schedule's time zone. */
  time: string
  zone: string
  /** All times in this file are ms since the epoch. */
  createdAt: number
  removedAt: number | null
  /** Null: it isn't paused. */
  pausedAt: number | null
  /** The last time that it was resumed; null: never. */
  resumedAt: number | null
  /** The latest date that has a run, `YYYY-MM-DD`. */
  newest: string | null
}

export interface ReportSchedule extends Common {
  kind: 'report'
  clientId: string
  reportType: ReportType
  /** Null: the schedule is for every entity of the client. */
  entityId: string | null
  mimeType: MimeType
  parameters: Record<string, string | number | boolean>
}

interface ExpirySchedule extends Common {
  kind: 'token-expiry'
}

export type Schedule = ReportSchedule | ExpirySchedule

const SELECT = `select
  s.schedule_id as "scheduleId",
  s.kind,
  s.client_id as "clientId",
  s.report_type as "reportType",
  s.entity_id as "entityId",
  s.mime_type as "mimeType",
  s.parameters,
  s.time,
  s.zone,
  s.created_at as "createdAt",
  s.removed_at as "removedAt",
  s.paused_at as "pausedAt",
  s.resumed_at as "resumedAt",
  (
    select r.business_date
    from tokenmill.schedule_run as r
    where r.schedule_id = s.schedule_id
    order by r.business_date desc
    limit 1
  ) as newest
from tokenmill.schedule as s`

/** Schedules that weren't removed, oldest first. */
export async function list(db: Db): Promise<Schedule[]> {
  const { rows } = await db.query<Schedule>({
    text: `${SELECT}
where s.removed_at is null
order by s.created_at, s.schedule_id`,
  })
  return rows
}

/** A schedule by its id (a UUID), also a removed one. */
export async function find(db: Db, scheduleId: string): Promise<Schedule | undefined> {
  const { rows } = await db.query<Schedule>({
    text: `${SELECT}
where s.schedule_id = $1`,
    values: [scheduleId],
  })
  return rows[0]
}

/** As `find`; nobody else changes the schedule until the transaction ends. */
export async function lock(db: Db, scheduleId: string): Promise<Schedule | undefined> {
  const { rows } = await db.query<Schedule>({
    text: `${SELECT}
where s.schedule_id = $1
for update of s`,
    values: [scheduleId],
  })
  return rows[0]
}

export type NewSchedule = Omit<
  ReportSchedule,
  'kind' | 'createdAt' | 'removedAt' | 'pausedAt' | 'resumedAt' | 'newest'
> & {
  /** Missed dates since this time are made up for, ms since the epoch. */
  since?: number
}

export async function insert(db: Db, schedule: NewSchedule): Promise<void> {
  const { scheduleId, clientId, reportType, entityId, mimeType, parameters, time, zone, since } = schedule
  await db.query({
    text: `insert into tokenmill.schedule (
  schedule_id,
  kind,
  client_id,
  report_type,
  entity_id,
  mime_type,
  parameters,
  time,
  zone,
  created_at
)
values (
  $1,
  'report',
  $2,
  $3,
  $4,
  $5,
  $6::jsonb,
  $7,
  $8,
  coalesce($9, now())
)`,
    values: [
      ...[scheduleId, clientId, reportType, entityId, mimeType, JSON.stringify(parameters), time, zone],
      since === undefined ? null : new Date(since),
    ],
  })
}

/** Removes a schedule of reports. False if there is none with this id. */
export async function remove(db: Db, scheduleId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.schedule
set removed_at = now()
where schedule_id = $1 and removed_at is null and kind = 'report'`,
    values: [scheduleId],
  })
  return count === 1
}

/** Pauses a schedule: no further run of it begins. */
export async function pause(db: Db, scheduleId: string): Promise<void> {
  await db.query({
    text: `update tokenmill.schedule
set paused_at = now()
where schedule_id = $1`,
    values: [scheduleId],
  })
}

/** Resumes a schedule at `now`, in ms since the epoch. Dates that it missed meanwhile are due then. */
export async function resume(db: Db, scheduleId: string, now: number): Promise<void> {
  await db.query({
    text: `update tokenmill.schedule
set paused_at = null, resumed_at = $2
where schedule_id = $1`,
    values: [scheduleId, new Date(now)],
  })
}
