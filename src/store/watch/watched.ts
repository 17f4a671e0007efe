// How the installation is, as the scheduler saw it last: checks, queues, and the worst of each minute. The console shows it.
import type { Db } from '../pool.ts'

export interface WatchedCheck {
  name: string
  state: 'well' | 'warning' | 'unknown' | 'critical'
  /** A sentence; no card data, no secret. */
  says: string
  /** What to do. */
  next: string | null
}

export interface WatchedQueue {
  kind: string
  waiting: number
  active: number
  delayed: number
  /** How long its oldest job has waited, in ms; null if none waits. */
  oldestMs: number | null
  /** Its jobs in the failed set. */
  failed: number
}

/** Times in ms; 0 if nothing waits. */
export interface WatchedTotals {
  /** How old the oldest unpublished result is. */
  outboxMs: number
  /** How long the oldest interactive job has waited, and the failed set; undefined if the queue server doesn't answer. */
  queued: { interactiveMs: number; failed: number } | undefined
}

/** Writes the checks, and removes those that are no longer made. A check in the state that it had before keeps its `since`. */
export async function writeChecks(db: Db, checks: readonly WatchedCheck[]): Promise<void> {
  await db.query({
    name: 'watch-checks-write',
    text: `with given as (
  select *
  from jsonb_to_recordset($1::jsonb) as g(
    name text,
    state text,
    says text,
    next text
  )
),
gone as (delete from tokenmill.watch_check where name not in (select name from given))
insert into tokenmill.watch_check as c (
  name,
  state,
  says,
  next
)
select
  name,
  state,
  says,
  next
from given
order by name
on conflict (name) do update
set
  state = excluded.state,
  says = excluded.says,
  next = excluded.next,
  seen_at = now(),
  since = case when c.state = excluded.state then c.since else now() end`,
    values: [JSON.stringify(checks)],
  })
}

/** Writes the queue of each kind, and removes those of kinds that aren't given: another release had them. */
export async function writeQueues(db: Db, queues: readonly WatchedQueue[]): Promise<void> {
  await db.query({
    name: 'watch-queues-write',
    text: `with given as (
  select *
  from jsonb_to_recordset($1::jsonb)
  as g(
    kind text,
    waiting integer,
    active integer,
    delayed integer,
    "oldestMs" bigint,
    failed integer
  )
),
gone as (delete from tokenmill.watch_queue where kind not in (select kind from given))
insert into tokenmill.watch_queue (
  kind,
  waiting,
  active,
  delayed,
  oldest_ms,
  failed
)
select
  kind,
  waiting,
  active,
  delayed,
  "oldestMs",
  failed
from given
order by kind
on conflict (kind) do update
set
  waiting = excluded.waiting,
  active = excluded.active,
  delayed = excluded.delayed,
  oldest_ms = excluded.oldest_ms,
  failed = excluded.failed,
  seen_at = now()`,
    values: [JSON.stringify(queues)],
  })
}

/** Adds what was seen now to this minute, of which the highest values are kept. */
export async function writeMinute(db: Db, { outboxMs, queued }: WatchedTotals): Promise<void> {
  await db.query({
    name: 'watch-minute-write',
    // `greatest` passes over nulls.
    text: `insert into tokenmill.watch_minute as m (
  minute,
  interactive_ms,
  failed,
  outbox_ms,
  outbox_last_ms
)
values (
  date_trunc('minute', now()),
  $1,
  $2,
  $3,
  $3
)
on conflict (minute) do update
set
  interactive_ms = greatest(m.interactive_ms, excluded.interactive_ms),
  failed = greatest(m.failed, excluded.failed),
  outbox_ms = greatest(m.outbox_ms, excluded.outbox_ms),
  outbox_last_ms = excluded.outbox_last_ms,
  seen_at = now()`,
    values: [queued ? Math.round(queued.interactiveMs) : null, queued?.failed ?? null, Math.round(outboxMs)],
  })
}

/** Erases minutes from before `before` (ms); returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.watch_minute
where minute < $1`,
    values: [new Date(before)],
  })
  return count
}
