// What the installation did in each minute, by kind: the sums of what workers say in their heartbeats. A sum is computed
// anew from all heartbeats as long as they hold its minute, so it makes no difference how often, or by how many schedulers.
import type { Db } from '../pool.ts'

/** What one worker did in one minute, by the worker's clock; the waits by the classes of `WAIT_BOUNDS_MS`. */
export interface WorkMinute {
  /** Minutes since the epoch. */
  minute: number
  kind: string
  /** Rows of chunks, and single jobs. */
  done: number
  refused: number
  failed: number
  /** How many attempts waited up to each bound. */
  waits: number[]
}

/** The upper bounds of the classes of waits, in ms; the last class has every longer wait. */
export const WAIT_BOUNDS_MS = [
  ...[10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000],
  ...[30_000, 60_000, 300_000, 900_000, 3_600_000, 86_400_000],
] as const

export const WORK_MINUTES = {
  /** A heartbeat holds the minutes of this time. */
  toldMs: 10 * 60_000,
  /** Minutes younger than this are summed. Less than `toldMs`, so that every heartbeat still holds a minute that is summed. */
  summedMs: 8 * 60_000,
  /** The row of a process that has ended stays for this time, so that its last minutes are summed. */
  endedMs: 15 * 60_000,
  keptDays: 8,
} as const

const REPORTED = `jsonb_to_recordset(p.work) as w(minute bigint, kind text, done bigint, refused bigint, failed bigint, waits bigint[])`

/** Sums the minutes of the last 8 min that are over; returns how many rows are new or changed. Safe to run twice at once. */
export async function fold(db: Db): Promise<number> {
  const { count } = await db.query({
    name: 'work-minutes-fold',
    text: `with told as materialized (
  select
    to_timestamp(w.minute * 60) as minute,
    w.kind,
    w.done,
    w.refused,
    w.failed,
    w.waits
  from tokenmill.process as p
  cross join lateral ${REPORTED}
  where p.work <> '[]' and to_timestamp(w.minute * 60) > now() - make_interval(secs => $1 / 1000.0)
    and to_timestamp(w.minute * 60 + 60) <= now()
), waits as (
  select
    minute,
    kind,
    sum(n) as n,
    bound
  from told, unnest(waits) with ordinality as c(n, bound)
  group by minute, kind, bound
), ranked as (
  select
    minute,
    kind,
    bound,
    sum(n) over (partition by minute, kind order by bound) as up_to,
    sum(n) over (partition by minute, kind) as jobs
  from waits
), p95 as (
  select minute, kind, ($2::bigint[])[min(bound)] as ms
  from ranked
  where jobs > 0 and up_to >= 0.95 * jobs
  group by minute, kind
)
insert into tokenmill.work_minute as m (
  minute,
  kind,
  done,
  refused,
  failed,
  wait_p95_ms
)
select
  s.minute,
  s.kind,
  s.done,
  s.refused,
  s.failed,
  p95.ms
from (
  select
    minute,
    kind,
    sum(done) as done,
    sum(refused) as refused,
    sum(failed) as failed
  from told
  group by minute, kind
) as s
left join p95 on p95.minute = s.minute and p95.kind = s.kind
order by s.minute, s.kind
on conflict (minute, kind) do update
set
  done = excluded.done,
  refused = excluded.refused,
  failed = excluded.failed,
  wait_p95_ms = excluded.wait_p95_ms
where (m.done, m.refused, m.failed, m.wait_p95_ms) is distinct from
  (excluded.done, excluded.refused, excluded.failed, excluded.wait_p95_ms)`,
    values: [WORK_MINUTES.summedMs, `{${[...WAIT_BOUNDS_MS, WAIT_BOUNDS_MS.at(-1)].join(',')}}`],
  })
  return count
}

/** Erases minutes from before `before` (ms); returns how many rows. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.work_minute
where minute < $1`,
    values: [new Date(before)],
  })
  return count
}
