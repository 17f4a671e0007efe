// Runs of schedules as the console shows them: one order, the newest date first, and filters by schedule and state. A run is its
// entity's. The sweep of tokens belongs to no entity, so only people for all entities see its runs. It only reads.
import type { Db } from '../pool.ts'
import { NO_ENTITY, RUN_STATES, type RunKey, type RunState } from '../report/schedule-runs.ts'
import { entitiesOf, type Sight } from '../sight.ts'

export { NO_ENTITY, RUN_STATES, type RunKey, type RunState }

export interface ListedRun extends RunKey {
  kind: 'report' | 'token-expiry'
  reportType: string | null
  state: RunState
  /** All times are ms since the epoch. */
  dueAt: number
  lateAt: number | null
  endedAt: number | null
  /** It has not begun, and its schedule is paused. */
  waitsForResume: boolean
  reason: string | null
  /** Of the sweep of tokens: how many it was about. */
  tokens: number | null
  /** Of the report: its lines, and from its beginning to its end in ms. Null: there is no report (yet). */
  lines: number | null
  madeMs: number | null
}

export interface SeenRun extends ListedRun {
  nextAt: number | null
  attempts: number
  faults: number
  /** The person also sees the schedule. */
  isScheduleSeen: boolean
  reportUid: string | null
  reportStatus: string | null
  mimeType: string | null
  fileName: string | null
  bytes: number | null
  /** Hexadecimal. */
  sha256: string | null
  storageKey: string | null
  failureReason: string | null
}

export interface RunFilter {
  scheduleId?: string | undefined
  state?: RunState | undefined
}

export interface RunListing extends RunFilter {
  /** The last run of the page before. */
  after?: RunKey | undefined
  limit: number
}

const LISTED = `r.schedule_id as "scheduleId", r.business_date as "businessDate", r.entity_id as "entityId", s.kind,
s.report_type as "reportType", r.state, r.due_at as "dueAt", r.late_at as "lateAt", r.ended_at as "endedAt", r.reason, r.tokens,
(r.state = 'DUE' and s.paused_at is not null) as "waitsForResume",
p.lines, (extract(epoch from p.modified_on - p.created_on) * 1000)::bigint as "madeMs"`
/** A report may have been made by the job of another request. */
const JOINED = `join tokenmill.schedule as s on s.schedule_id = r.schedule_id
left join tokenmill.report as p on p.report_uid = coalesce(r.report_uid, r.receipt_id) and p.report_entity_uid = r.entity_id`
const KEY = 'r.business_date, r.schedule_id, r.entity_id'
const NEWEST = 'order by r.business_date desc, r.schedule_id desc, r.entity_id desc'
// $1 entities, $2 schedule, $3 state, $4 to $6 the last run of the page before, $7 limit. Each is named in every statement, so that
// PostgreSQL knows its type.
const WANTED = `($2::uuid is null or r.schedule_id = $2) and ($3::text is null or r.state = $3)
  and ($4::date is null or (${KEY}) < ($4, $5::uuid, $6::uuid))`

/** The keys of the runs, by an index: of all runs, of a schedule, of the entities, or of a state other than SUCCEEDED. */
function sourceOf(sight: Sight, { scheduleId, state }: RunFilter): string {
  const more = [
    ...(scheduleId === undefined ? [] : ['r.schedule_id = $2']),
    ...(state === undefined ? [] : [`r.state = '${state}'`]),
    ...(state === undefined || state === 'SUCCEEDED' ? [] : [`r.state <> 'SUCCEEDED'`]),
  ]
  const walk = (own: string) => `select r.schedule_id, r.business_date, r.entity_id
from tokenmill.schedule_run as r
where ${[own, ...more, WANTED].join(' and ')} ${NEWEST}
limit $7`
  if (sight.sees === 'all') return walk('$1::uuid[] is null')
  return `select r.schedule_id, r.business_date, r.entity_id
from (select distinct unnest($1::uuid[]) as id) as own
cross join lateral (${walk('r.entity_id = own.id')}) as r ${NEWEST}
limit $7`
}

/** A page of runs, the newest date first. */
export async function list(sight: Sight, db: Db, asked: RunListing): Promise<ListedRun[]> {
  const { scheduleId, state, after, limit } = asked
  const isKnown = state === undefined || RUN_STATES.includes(state)
  const { rows } = await db.query<ListedRun>({
    text: `select ${LISTED}
from (${sourceOf(sight, isKnown ? asked : { scheduleId })}) as listed
join tokenmill.schedule_run as r on (${KEY}) = (listed.business_date, listed.schedule_id, listed.entity_id) ${JOINED} ${NEWEST}`,
    values: [
      entitiesOf(sight),
      ...[scheduleId ?? null, state ?? null],
      ...[after?.businessDate ?? null, after?.scheduleId ?? null, after?.entityId ?? null],
      limit,
    ],
  })
  return rows
}

/** Undefined for a run of others, as for one that isn't there. The ids are UUIDs. */
export async function find(
  sight: Sight,
  db: Db,
  { scheduleId, businessDate, entityId }: RunKey,
): Promise<SeenRun | undefined> {
  const { rows } = await db.query<SeenRun>({
    text: `select
  ${LISTED},
  r.next_at as "nextAt",
  r.attempts,
  r.faults,
  p.report_uid as "reportUid",
  p.status as "reportStatus",
  p.mime_type as "mimeType",
  p.file_name as "fileName",
  p.bytes,
  encode(p.sha256, 'hex') as sha256,
  p.storage_key as "storageKey",
  p.failure_reason as "failureReason",
  ($1::uuid[] is null or s.entity_id = any($1) or (s.entity_id is null and not c.system
    and cardinality(c.entities) > 0 and c.entities <@ $1)) as "isScheduleSeen"
from tokenmill.schedule_run as r ${JOINED}
left join tokenmill.client as c on c.client_id = s.client_id
where ($1::uuid[] is null or r.entity_id = any($1)) and r.schedule_id = $2 and r.business_date = $3 and r.entity_id = $4`,
    values: [entitiesOf(sight), scheduleId, businessDate, entityId],
  })
  return rows[0]
}
