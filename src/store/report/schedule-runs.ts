// Runs of schedules: one row for each date (and entity) of a schedule, inserted when it is due. A scheduler claims a
// run by setting its next time: if that scheduler dies, another one takes the run over at that time.
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export const RUN_STATES = ['DUE', 'QUEUED', 'FAULTED', 'SUCCEEDED', 'FAILED'] as const
/** FAULTED: a fault occurred, and the run is tried again. SUCCEEDED and FAILED are final. */
export type RunState = (typeof RUN_STATES)[number]

/** The entity id of a run that belongs to no entity. */
export const NO_ENTITY = '00000000-0000-0000-0000-000000000000'

export interface RunKey {
  scheduleId: string
  /** `YYYY-MM-DD`. */
  businessDate: string
  entityId: string
}

export interface Run extends RunKey {
  receiptId: string | null
  state: RunState
  /** All times in this file are ms since the epoch. */
  dueAt: number
  attempts: number
  faults: number
  reportUid: string | null
  tokens: number | null
  reason: string | null
  lateAt: number | null
  endedAt: number | null
}

const COLUMNS = `
  r.schedule_id as "scheduleId",
  r.business_date as "businessDate",
  r.entity_id as "entityId",
  r.receipt_id as "receiptId",
  r.state,
  r.due_at as "dueAt",
  r.attempts,
  r.faults,
  r.report_uid as "reportUid",
  r.tokens,
  r.reason,
  r.late_at as "lateAt",
  r.ended_at as "endedAt"`

/** Whether the run of the alias `r` has not begun, and its schedule is paused: it doesn't begin, and is neither late nor given up. */
export const WAITS_FOR_RESUME = `(r.state = 'DUE' and exists (select from tokenmill.schedule as paused
  where paused.schedule_id = r.schedule_id and paused.paused_at is not null))`

export type NewRun = Pick<Run, keyof RunKey | 'receiptId' | 'dueAt'>

/** Inserts the runs that don't exist yet, but none of a schedule that is paused; returns how many. */
export async function insert(db: Db, runs: readonly NewRun[]): Promise<number> {
  if (runs.length === 0) return 0
  const { count } = await db.query({
    // The lock waits for somebody who pauses the schedule now.
    text: `with going as materialized (
  select schedule_id
  from tokenmill.schedule
  where schedule_id = any($1::uuid[]) and paused_at is null
  for share
)
insert into tokenmill.schedule_run (
  schedule_id,
  business_date,
  entity_id,
  receipt_id,
  due_at,
  next_at
)
select v.*, v.due_at
from unnest(
  $1::uuid[],
  $2::date[],
  $3::uuid[],
  $4::uuid[],
  $5::timestamptz[]
)
  as v(
    schedule_id,
    business_date,
    entity_id,
    receipt_id,
    due_at
  )
join going on going.schedule_id = v.schedule_id
on conflict on constraint schedule_run_pkey do nothing`,
    values: [
      plains(runs.map(run => run.scheduleId)),
      plains(runs.map(run => run.businessDate)),
      plains(runs.map(run => run.entityId)),
      plains(runs.map(run => run.receiptId)),
      plains(runs.map(run => new Date(run.dueAt).toISOString())),
    ],
  })
  return count
}

/** Reopens runs that ended as FAILED, due at `now`; returns how many. */
export async function reopen(db: Db, runs: readonly RunKey[], now: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.schedule_run as r
set
  state = 'DUE',
  due_at = $4,
  next_at = $4,
  attempts = 0,
  faults = 0,
  reason = null,
  late_at = null,
  ended_at = null
from unnest($1::uuid[], $2::date[], $3::uuid[]) as v(schedule_id, business_date, entity_id)
where r.schedule_id = v.schedule_id and r.business_date = v.business_date and r.entity_id = v.entity_id and r.state = 'FAILED'`,
    values: [
      plains(runs.map(run => run.scheduleId)),
      plains(runs.map(run => run.businessDate)),
      plains(runs.map(run => run.entityId)),
      new Date(now),
    ],
  })
  return count
}

interface Claiming {
  /** ms since the epoch. */
  now: number
  leaseMs: number
  limit: number
  /** True: runs whose job was not sent yet. False: runs whose job was sent. */
  fresh: boolean
}

/** Takes runs that are due by `now`; until `now` + `leaseMs` they belong to the caller. */
export async function claim(db: Db, { now, leaseMs, limit, fresh }: Claiming): Promise<Run[]> {
  const { rows } = await db.query<Run>({
    text: `update tokenmill.schedule_run as r
set next_at = $2, attempts = r.attempts + 1
from (
  select r.schedule_id, r.business_date, r.entity_id
  from tokenmill.schedule_run as r
  where r.next_at <= $1 and (r.state = 'DUE') = $4 and not ${WAITS_FOR_RESUME}
  order by r.next_at
  limit $3
  for update skip locked
) as due
where r.schedule_id = due.schedule_id and r.business_date = due.business_date and r.entity_id = due.entity_id
returning ${COLUMNS}`,
    values: [new Date(now), new Date(now + leaseMs), limit, fresh],
  })
  return rows
}

/** Makes runs due at `now` that wait for a resume and were due after `since`. Both are ms. */
export async function resume(db: Db, scheduleId: string, due: { since: number; now: number }): Promise<void> {
  await db.query({
    text: `update tokenmill.schedule_run
set due_at = $3, next_at = $3, late_at = null
where schedule_id = $1 and ${OPEN} and state = 'DUE' and due_at > $2`,
    values: [scheduleId, new Date(due.since), new Date(due.now)],
  })
}

/** How many runs have a job that was sent and isn't answered. */
export async function countQueued(db: Db): Promise<number> {
  const text = `select count(*) as n
from tokenmill.schedule_run
where ${OPEN} and state = 'QUEUED'`
  const { rows } = await db.query<{ n: number }>({ text })
  return rows[0]?.n ?? 0
}

const OPEN = `next_at is not null`
const THIS = 'schedule_id = $1 and business_date = $2 and entity_id = $3'
const keyOf = ({ scheduleId, businessDate, entityId }: RunKey) => [scheduleId, businessDate, entityId]

/** Records that the job was sent. Without an answer the run is due again at `nextAt`. */
export async function markQueued(db: Db, run: RunKey, nextAt: number): Promise<void> {
  await db.query({
    text: `update tokenmill.schedule_run
set state = 'QUEUED', next_at = $4
where ${THIS} and ${OPEN}`,
    values: [...keyOf(run), new Date(nextAt)],
  })
}

/** Ends a run as FAILED, unless it has ended. Returns the run if this call ended it. */
export async function fail(db: Db, run: RunKey, reason: string): Promise<Run | undefined> {
  const { rows } = await db.query<Run>({
    text: `update tokenmill.schedule_run as r
set
  state = 'FAILED',
  reason = $4,
  next_at = null,
  ended_at = now()
where ${THIS} and ${OPEN}
returning ${COLUMNS}`,
    values: [...keyOf(run), reason],
  })
  return rows[0]
}

export async function finishSweep(db: Db, run: RunKey, tokens: number): Promise<Run | undefined> {
  const { rows } = await db.query<Run>({
    text: `update tokenmill.schedule_run as r
set
  state = 'SUCCEEDED',
  reason = null,
  tokens = $4,
  next_at = null,
  ended_at = now()
where ${THIS} and ${OPEN}
returning ${COLUMNS}`,
    values: [...keyOf(run), tokens],
  })
  return rows[0]
}

export type Answered =
  | { state: 'SUCCEEDED'; reportUid: string | null }
  | { state: 'FAULTED'; reason: string; nextAt: number; faultsMax: number }
  | { state: 'FAILED'; reason: string }

/**
 * Applies the answer to the job of this receipt. A success is final, and an older answer doesn't reopen a run. Returns
 * the run if its row changed.
 */
export async function applyAnswer(db: Db, receiptId: string, answered: Answered): Promise<Run | undefined> {
  const { rows } =
    answered.state === 'FAULTED'
      ? await db.query<Run>({
          text: `update tokenmill.schedule_run as r
set
  reason = $2,
  faults = faults + 1,
  state = case when faults + 1 < $4 then 'FAULTED' else 'FAILED' end,
  next_at = case when faults + 1 < $4 then $3::timestamptz end,
  ended_at = case when faults + 1 < $4 then null else now() end
where receipt_id = $1 and ${OPEN}
returning ${COLUMNS}`,
          values: [receiptId, answered.reason, new Date(answered.nextAt), Math.min(answered.faultsMax, 2_147_483_647)],
        })
      : await db.query<Run>({
          text: `update tokenmill.schedule_run as r
set
  state = $2,
  reason = $3,
  report_uid = $4,
  next_at = null,
  ended_at = now()
where receipt_id = $1 and (${OPEN} or ($2 = 'SUCCEEDED' and state = 'FAILED'))
returning ${COLUMNS}`,
          values:
            answered.state === 'SUCCEEDED'
              ? [receiptId, 'SUCCEEDED', null, answered.reportUid]
              : [receiptId, 'FAILED', answered.reason, null],
        })
  return rows[0]
}

/** Marks open runs as late that were due by `before` and aren't marked yet; returns them. */
export async function markLate(db: Db, before: number, now: number): Promise<Run[]> {
  const { rows } = await db.query<Run>({
    text: `update tokenmill.schedule_run as r
set late_at = $2
where r.${OPEN} and r.late_at is null and r.due_at <= $1 and not ${WAITS_FOR_RESUME}
returning ${COLUMNS}`,
    values: [new Date(before), new Date(now)],
  })
  return rows
}

/** Gives up open runs of removed schedules, and open runs that were due by `before`; returns them. */
export async function giveUp(db: Db, before: number): Promise<Run[]> {
  const { rows } = await db.query<Run>({
    text: `update tokenmill.schedule_run as r
set
  state = 'FAILED',
  next_at = null,
  ended_at = now(),
  reason = case when s.removed_at is null then coalesce(r.reason, 'unanswered') else 'schedule_removed' end
from tokenmill.schedule as s
where s.schedule_id = r.schedule_id and r.${OPEN}
  and (s.removed_at is not null or (r.due_at <= $1 and not ${WAITS_FOR_RESUME}))
returning ${COLUMNS}`,
    values: [new Date(before)],
  })
  return rows
}

/** When the oldest open run was due, and how many are marked as late; without those that wait for a resume. */
export async function measureOpen(db: Db): Promise<{ oldestDueAt: number | undefined; late: number }> {
  const { rows } = await db.query<{ dueAt: number | null; late: number }>({
    text: `select min(r.due_at) as "dueAt", count(r.late_at) as late
from tokenmill.schedule_run as r
where r.${OPEN} and not ${WAITS_FOR_RESUME}`,
  })
  return { oldestDueAt: rows[0]?.dueAt ?? undefined, late: rows[0]?.late ?? 0 }
}

/**
 * Open runs that were due by `dueBefore`, and runs that failed since `failedSince` (ms) without a later success of the
 * same schedule and entity; oldest first. Removed schedules are left out.
 */
export async function listTroubled(
  db: Db,
  { dueBefore, failedSince, limit }: { dueBefore: number; failedSince: number; limit: number },
): Promise<Run[]> {
  const { rows } = await db.query<Run>({
    text: `select ${COLUMNS}
from tokenmill.schedule_run as r
join tokenmill.schedule as s on s.schedule_id = r.schedule_id and s.removed_at is null
where (r.${OPEN} and r.due_at <= $1 and not ${WAITS_FOR_RESUME}) or (r.state = 'FAILED' and r.ended_at >= $2 and not exists (
  select
  from tokenmill.schedule_run as well
  where well.schedule_id = r.schedule_id and well.entity_id = r.entity_id
    and well.state = 'SUCCEEDED' and well.ended_at > r.ended_at
))
order by r.due_at
limit $3`,
    values: [new Date(dueBefore), new Date(failedSince), limit],
  })
  return rows
}

export interface RunFilter {
  scheduleId?: string | undefined
  businessDate?: string | undefined
  state?: RunState | undefined
  limit: number
}

/** Runs, latest first. */
export async function list(db: Db, { scheduleId, businessDate, state, limit }: RunFilter): Promise<Run[]> {
  const { rows } = await db.query<Run>({
    text: `select ${COLUMNS}
from tokenmill.schedule_run as r
where ($1::uuid is null or schedule_id = $1) and ($2::date is null or business_date = $2) and ($3::text is null or state = $3)
order by business_date desc, schedule_id, entity_id
limit $4`,
    values: [scheduleId ?? null, businessDate ?? null, state ?? null, limit],
  })
  return rows
}

/** Runs of one schedule, latest first. */
export function listOf(db: Db, scheduleId: string, limit: number): Promise<Run[]> {
  return list(db, { scheduleId, limit })
}

/** Deletes ended runs of dates before `businessDate`; returns how many. */
export async function forget(db: Db, businessDate: string): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.schedule_run
where business_date < $1 and next_at is null`,
    values: [businessDate],
  })
  return count
}

/** Of a report that a schedule asked for: schedule, date and entity, with slashes between them. */
export async function findRunOf(db: Db, reportUid: string): Promise<string | undefined> {
  const { rows } = await db.query<{ run: string }>({
    name: 'schedule-run-of-report',
    text: `select concat_ws('/', schedule_id, business_date, entity_id) as run
from tokenmill.schedule_run
where receipt_id = $1`,
    values: [reportUid],
  })
  return rows[0]?.run
}
