// Schedules as the console shows them. People for some entities see those of one of their entities, and those for all entities of a
// client that acts for no other one. It only reads.
import type { Going } from '../../job/schedule/business-dates.ts'
import type { Db } from '../pool.ts'
import { NO_ENTITY, type RunState, WAITS_FOR_RESUME } from '../report/schedule-runs.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export interface SeenSchedule extends Going {
  scheduleId: string
  clientId: string | null
  clientName: string | null
  reportType: string | null
  mimeType: string | null
  /** Null: every entity of the client, or of the sweep of tokens none. */
  entityId: string | null
  parameters: Record<string, string | number | boolean>
  /** All times are ms since the epoch. */
  removedAt: number | null
  /** False: the client acts for no entity now, so no run is made. */
  hasEntities: boolean
}

/** What names a schedule. */
export type NamedSchedule = Pick<SeenSchedule, 'scheduleId' | 'kind' | 'reportType' | 'time' | 'zone'>

/** The runs of the latest date of a schedule, summed. */
export interface LatestRuns {
  lastDate: string
  /** Of one run that is in the worst state. */
  lastState: RunState
  lastReason: string | null
  lastRuns: number
}

/** What of a schedule needs somebody. */
export interface Trouble {
  /** When the oldest open run was due that was due before the given time; null: none is open so long. */
  lateSince: number | null
  /** The last failure within the given time that no later success of the same entity makes up for. */
  failedAt: number | null
  /** Why that run failed. */
  failedReason: string | null
}

export interface ListedSchedule extends SeenSchedule, Trouble, Partial<LatestRuns> {}

const COLUMNS = `s.schedule_id as "scheduleId", s.kind, s.client_id as "clientId", c.name as "clientName", s.report_type as "reportType",
s.mime_type as "mimeType", s.entity_id as "entityId", s.parameters, s.time, s.zone, s.created_at as "createdAt",
s.removed_at as "removedAt", s.paused_at as "pausedAt", s.resumed_at as "resumedAt",
(s.entity_id is not null or s.kind = 'token-expiry' or cardinality(c.entities) > 0) as "hasEntities",
(select r.business_date from tokenmill.schedule_run as r where r.schedule_id = s.schedule_id
  order by r.business_date desc limit 1) as newest`
const CLIENT = 'left join tokenmill.client as c on c.client_id = s.client_id'
/** Whether the person sees the schedule of an alias `s`, with its client in `c`. */
const SEEN = `($1::uuid[] is null or s.entity_id = any($1)
  or (s.kind = 'report' and s.entity_id is null and not c.system and cardinality(c.entities) > 0 and c.entities <@ $1))`
const OWN_RUN = `r.schedule_id = s.schedule_id and ($1::uuid[] is null or r.entity_id = any($1))`

/** Undefined for a schedule of others, as for one that isn't there. Also one that was removed. `scheduleId`: a UUID. */
export async function find(sight: Sight, db: Db, scheduleId: string): Promise<SeenSchedule | undefined> {
  const { rows } = await db.query<SeenSchedule>({
    text: `select ${COLUMNS}
from tokenmill.schedule as s ${CLIENT}
where ${SEEN} and s.schedule_id = $2`,
    values: [entitiesOf(sight), scheduleId],
  })
  return rows[0]
}

export interface TroubleSince {
  /** An open run that was due by then is late; ms since the epoch. */
  dueBefore: number
  /** Failures since then count; ms since the epoch. */
  failedSince: number
}

/** Of all schedules, or of one. $1 entities, $2 due before, $3 failed since. */
const troubleOf = (schedule: 'all' | `$${number}::uuid`) => {
  const own = `($1::uuid[] is null or r.entity_id = any($1))${schedule === 'all' ? '' : ` and r.schedule_id = ${schedule}`}`
  return `late as (
  select r.schedule_id, min(r.due_at) as since from tokenmill.schedule_run as r
  where r.next_at is not null and r.due_at <= $2 and ${own} and not ${WAITS_FOR_RESUME} group by r.schedule_id
), failed as (
  select r.schedule_id, max(r.ended_at) as at, (array_agg(r.reason order by r.ended_at desc))[1] as reason from tokenmill.schedule_run as r
  where r.state = 'FAILED' and r.ended_at >= $3 and ${own}
    and not exists (select from tokenmill.schedule_run as well where well.schedule_id = r.schedule_id
      and well.entity_id = r.entity_id and well.state = 'SUCCEEDED' and well.ended_at > r.ended_at)
  group by r.schedule_id
)`
}

/** What of all runs of one schedule needs somebody, as in the list. `scheduleId`: a UUID. */
export async function findTrouble(
  sight: Sight,
  db: Db,
  { scheduleId, dueBefore, failedSince }: TroubleSince & { scheduleId: string },
): Promise<Trouble> {
  const { rows } = await db.query<Trouble>({
    text: `with ${troubleOf('$4::uuid')}
select (select since from late) as "lateSince", (select at from failed) as "failedAt", (select reason from failed) as "failedReason"`,
    values: [entitiesOf(sight), new Date(dueBefore), new Date(failedSince), scheduleId],
  })
  return rows[0] ?? { lateSince: null, failedAt: null, failedReason: null }
}

/**
 * Schedules that weren't removed: first those with a late or failed run, then the oldest. `limit`: of those without trouble the
 * last ones are left out.
 */
export async function list(
  sight: Sight,
  db: Db,
  { dueBefore, failedSince, limit }: TroubleSince & { limit: number },
): Promise<ListedSchedule[]> {
  const { rows } = await db.query<ListedSchedule>({
    text: `with ${troubleOf('all')}
select
  s.*,
  latest."lastDate",
  latest."lastState",
  latest."lastReason",
  latest."lastRuns"
from (
  select
    ${COLUMNS},
    late.since as "lateSince",
    failed.at as "failedAt",
    failed.reason as "failedReason"
  from tokenmill.schedule as s ${CLIENT}
  left join late on late.schedule_id = s.schedule_id
  left join failed on failed.schedule_id = s.schedule_id
  where ${SEEN} and s.removed_at is null
  order by
    late.since is null,
    late.since,
    failed.at is null,
    s.paused_at is null,
    s.created_at,
    s.schedule_id
  limit $4
) as s
left join lateral (
  select
    max(r.business_date) as "lastDate",
    count(*) as "lastRuns",
    (array_agg(r.state order by ${worst('r.state')}))[1] as "lastState",
    (array_agg(r.reason order by ${worst('r.state')}))[1] as "lastReason"
  from tokenmill.schedule_run as r
  where r.schedule_id = s."scheduleId" and r.business_date = s.newest
    and ($1::uuid[] is null or r.entity_id = any($1))
  having count(*) > 0
) as latest on true`,
    values: [entitiesOf(sight), new Date(dueBefore), new Date(failedSince), limit],
  })
  return rows
}

function worst(state: string): string {
  return `array_position(array['FAILED', 'FAULTED', 'DUE', 'QUEUED', 'SUCCEEDED'], ${state})`
}

export interface SeenDateRun {
  entityId: string
  state: RunState
  /** ms since the epoch. */
  dueAt: number
}

/** The runs of one date of a schedule that the person sees, as an act on it needs them. */
export async function listOfDate(
  sight: Sight,
  db: Db,
  { scheduleId, date, limit }: { scheduleId: string; date: string; limit: number },
): Promise<SeenDateRun[]> {
  const { rows } = await db.query<SeenDateRun>({
    text: `select r.entity_id as "entityId", r.state, r.due_at as "dueAt"
from tokenmill.schedule as s ${CLIENT}
join tokenmill.schedule_run as r on ${OWN_RUN}
where ${SEEN} and s.schedule_id = $2 and r.business_date = $3
limit $4`,
    values: [entitiesOf(sight), scheduleId, date, limit],
  })
  return rows
}

/** The entities for which a schedule makes runs now; of the sweep of tokens NO_ENTITY. */
export async function listEntities(sight: Sight, db: Db, scheduleId: string): Promise<string[]> {
  const { rows } = await db.query<{ entities: string[] }>({
    text: `select case when s.kind = 'token-expiry' then array[$3::uuid] when s.entity_id is not null then array[s.entity_id]
  else coalesce(c.entities, '{}') end as entities
from tokenmill.schedule as s ${CLIENT}
where ${SEEN} and s.schedule_id = $2`,
    values: [entitiesOf(sight), scheduleId, NO_ENTITY],
  })
  return rows[0]?.entities ?? []
}
