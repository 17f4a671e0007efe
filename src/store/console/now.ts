// What the page Now shows of the whole installation: processes, what the scheduler saw, and the last hour. People for some
// entities see none of it, but for the pulse, which says whether somebody works and looks at all. It only reads.
import { BEAT } from '../access/beat.ts'
import { isReplaced } from '../access/processes.ts'
import type { ProcessRole } from '../connection/plan.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'
import type { WatchedCheck, WatchedQueue } from '../watch/watched.ts'

/** A process that was silent for longer counts as dead, in ms. */
export const DEAD_MS = BEAT.deadMs
/** A process that was silent for longer is late: it should have been heard twice. */
export const LATE_MS = BEAT.lateMs

/** Null if the moment is: `greatest` alone would pass over it and say 0. */
const msSince = (moment: string) =>
  `(case when ${moment} is not null then greatest(0, extract(epoch from now() - ${moment})) end * 1000)::bigint`
const ALL = '$1::uuid[] is null'

/** Whether what works is seen at all. Anybody may know; the details are for people who see everything. */
export interface Pulse {
  /** The time since the scheduler last wrote how the installation is, in ms; null: never. */
  watchedMs: number | null
  /** The time since a worker was last heard, or one that takes the kind that was asked about, in ms; null: none is there. */
  heardMs: number | null
  /** The same of a worker that takes batches. */
  batchesHeardMs: number | null
  /** The scheduler found the store or the queue server away or full. */
  areServersOut: boolean
  /** False: the details are not for this person. */
  isWhole: boolean
}

export async function findPulse(sight: Sight, db: Db, kind?: string): Promise<Pulse> {
  const { rows } = await db.query<Pulse>({
    name: 'seen-pulse',
    text: `select
  ${msSince('max(c.seen_at)')} as "watchedMs",
  coalesce(bool_or(c.name in ('store', 'queues') and c.state in ('critical', 'unknown')), false) as "areServersOut",
  ${ALL} as "isWhole",
  p."heardMs",
  p."batchesHeardMs"
from (
  select
    ${msSince('max(seen_at) filter (where $2::text is null or $2 = any(kinds))')} as "heardMs",
    ${msSince(`max(seen_at) filter (where 'token-batch' = any(kinds))`)} as "batchesHeardMs"
  from tokenmill.process
  where kinds <> '{}' and ended_at is null
) as p
left join tokenmill.watch_check as c on true
group by p."heardMs", p."batchesHeardMs"`,
    values: [entitiesOf(sight), kind ?? null],
  })
  return rows[0] ?? { watchedMs: null, heardMs: null, batchesHeardMs: null, areServersOut: false, isWhole: false }
}

export interface SeenProcess {
  host: string
  role: string
  version: string
  /** Empty if it is no worker. */
  kinds: string[]
  /** The time since its last heartbeat, in ms. */
  silentMs: number
}

/**
 * Processes that weren't ended on purpose. A dead one stays for an hour, unless another was started in its place: `status` doesn't
 * name it then, and its row would ask for somebody whom nothing needs.
 */
export async function listProcesses(sight: Sight, db: Db): Promise<SeenProcess[]> {
  const { rows } = await db.query<SeenProcess & { role: ProcessRole; startedAt: number }>({
    name: 'seen-processes',
    text: `select
  host,
  role,
  version,
  kinds,
  started_at as "startedAt",
  ${msSince('seen_at')} as "silentMs"
from tokenmill.process
where ${ALL} and ended_at is null
order by host, role, version
limit 1000`,
    values: [entitiesOf(sight)],
  })
  const alive = rows.filter(({ silentMs }) => silentMs <= DEAD_MS)
  return rows
    .filter(one => one.silentMs <= LATE_MS || !isReplaced(one, alive))
    .map(({ startedAt: _, ...process }) => process)
}

export interface SeenCheck extends WatchedCheck {
  /** ms since the epoch: since when it is in this state. */
  since: number
}

export async function listChecks(sight: Sight, db: Db): Promise<SeenCheck[]> {
  const { rows } = await db.query<SeenCheck>({
    name: 'seen-checks',
    text: `select
  name,
  state,
  says,
  next,
  since
from tokenmill.watch_check
where ${ALL}
order by since, name`,
    values: [entitiesOf(sight)],
  })
  return rows
}

export interface SeenQueue extends WatchedQueue {
  /** The time since it was measured, in ms. */
  agoMs: number
}

export async function listQueues(sight: Sight, db: Db): Promise<SeenQueue[]> {
  const { rows } = await db.query<SeenQueue>({
    name: 'seen-queues',
    text: `select
  kind,
  waiting,
  active,
  delayed,
  oldest_ms as "oldestMs",
  failed,
  ${msSince('seen_at')} as "agoMs"
from tokenmill.watch_queue
where ${ALL}
order by kind`,
    values: [entitiesOf(sight)],
  })
  return rows
}

export interface RecentWork {
  kind: string
  /** Rows and single jobs that were decided within the last 60 s. */
  n: number
}

/**
 * What workers did in the last 60 s, by kind. Heartbeats say it by minutes: of the minute before, the part counts that is
 * within the 60 s.
 */
export async function sumRecent(sight: Sight, db: Db): Promise<RecentWork[]> {
  const { rows } = await db.query<RecentWork>({
    name: 'seen-recent-work',
    text: `select w.kind, sum((w.done + w.refused + w.failed) * case when w.minute = t.minute then 1 else 1 - t.part end)::float8 as n
from (select floor(extract(epoch from now()) / 60) as minute, extract(epoch from now())::numeric / 60 % 1 as part) as t,
  tokenmill.process as p
cross join lateral
  jsonb_to_recordset(p.work) as w(
    minute bigint,
    kind text,
    done bigint,
    refused bigint,
    failed bigint
  )
where ${ALL} and p.work <> '[]' and w.minute in (t.minute, t.minute - 1)
group by w.kind`,
    values: [entitiesOf(sight)],
  })
  return rows
}

/** A minute that is over, in ms since the epoch. */
export interface RowsMinute {
  minute: number
  /** Rows and single jobs of the kinds that were asked for. */
  rows: number
}

/** The last `minutes` minutes; one in which nothing is known to have been done is absent. */
export async function listRows(
  sight: Sight,
  db: Db,
  { kinds, minutes }: { kinds: readonly string[]; minutes: number },
): Promise<RowsMinute[]> {
  const { rows } = await db.query<RowsMinute>({
    name: 'seen-rows',
    text: `select minute, sum(done + refused + failed)::bigint as rows
from tokenmill.work_minute
where ${ALL} and minute >= date_trunc('minute', now()) - make_interval(mins => $2) and kind = any($3)
group by minute
order by minute`,
    values: [entitiesOf(sight), minutes, kinds],
  })
  return rows
}

/** By kind the wait of the last minute in which jobs began, of the last three, in ms. */
export async function listWaits(sight: Sight, db: Db): Promise<{ kind: string; p95Ms: number | null }[]> {
  const { rows } = await db.query<{ kind: string; p95Ms: number | null }>({
    name: 'seen-waits',
    text: `select distinct on (kind) kind, wait_p95_ms as "p95Ms"
from tokenmill.work_minute
where ${ALL} and minute >= now() - interval '4 minutes'
order by kind, minute desc`,
    values: [entitiesOf(sight)],
  })
  return rows
}

export interface WatchMinute {
  minute: number
  interactiveMs: number | null
  failed: number | null
  outboxMs: number
  /** The outbox at the last look, and the time since then, in ms. */
  outboxLastMs: number
  agoMs: number
}

export async function listMinutes(sight: Sight, db: Db, minutes: number): Promise<WatchMinute[]> {
  const { rows } = await db.query<WatchMinute>({
    name: 'seen-minutes',
    text: `select
  minute,
  interactive_ms as "interactiveMs",
  failed,
  outbox_ms as "outboxMs",
  outbox_last_ms as "outboxLastMs",
  ${msSince('seen_at')} as "agoMs"
from tokenmill.watch_minute
where ${ALL} and minute >= date_trunc('minute', now()) - make_interval(mins => $2)
order by minute`,
    values: [entitiesOf(sight), minutes],
  })
  return rows
}
