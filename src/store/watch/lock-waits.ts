// Who holds what others of this database wait for, as PostgreSQL says. Every user may ask: the id, the user and the application
// of a session are shown to all, and how long others wait for it; what it does and since when, only to its own user and to
// members of pg_read_all_stats.
import type { Db } from '../pool.ts'

export interface LockHolder {
  /** 0: a prepared transaction, which no session has. */
  pid: number
  user: string | null
  application: string | null
  /** The tables that others wait for. */
  relations: readonly string[]
  /** The strongest lock on them that it has; null where it isn't on a whole table. */
  mode: string | null
  /** `idle in transaction`, `active`, …; null if it may not be seen. */
  state: string | null
  /** For how long its transaction has lasted, in ms; null if it may not be seen. */
  heldMs: number | null
  /** How many sessions wait for it. */
  waiting: number
  /** How long the first of them has waited, in ms. */
  waitMs: number
}

interface Row {
  pid: number
  waitMs: number
  relation: string | null
  blocker: number
  user: string | null
  application: string | null
  state: string | null
  heldMs: number | null
  mode: string | null
}

const WAITERS_MAX = 50

/** The sessions at the beginning of each line of those that have waited for `ms` or longer, the longest wait first. */
export async function listHolders(db: Db, ms: number): Promise<LockHolder[]> {
  const { rows } = await db.query<Row>({
    text: `with waiter as materialized (
  select l.pid, min(extract(epoch from clock_timestamp() - l.waitstart) * 1000)::float8 as wait_ms,
    min(coalesce(l.relation, (
      select t.relation
      from pg_locks as t
      where t.pid = l.pid and t.locktype = 'tuple'
      limit 1
    )))::oid as relation
  from pg_locks as l
  join pg_stat_activity as a on a.pid = l.pid
  where not l.granted and a.datname = current_database() and l.waitstart <= clock_timestamp() - make_interval(secs => $1 / 1000.0)
  group by l.pid
  order by wait_ms desc
  limit ${WAITERS_MAX}
)
select
  w.pid,
  w.wait_ms as "waitMs",
  (
    select format('%I.%I', n.nspname, c.relname)
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where c.oid = w.relation
  ) as relation,
  b.pid as blocker,
  a.usename::text as "user",
  nullif(a.application_name, '') as application,
  a.state,
  (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::float8 as "heldMs",
  (
    select h.mode
    from pg_locks as h
    where h.pid = b.pid and h.granted and h.relation = w.relation
    order by h.mode = 'AccessExclusiveLock' desc, h.mode like '%Exclusive%' desc
    limit 1
  ) as mode
from waiter as w
cross join lateral unnest(pg_blocking_pids(w.pid)) as b(pid)
left join pg_stat_activity as a on a.pid = b.pid`,
    values: [ms],
  })
  return holdersOf(rows)
}

/** Of a line only its first: one who waits as well holds nobody up by itself. Of sessions that wait for one another, all. */
export function holdersOf(rows: readonly Row[]): LockHolder[] {
  const waiting = new Set(rows.map(({ pid }) => pid))
  const blockersOf = Map.groupBy(rows, ({ pid }) => pid)
  const firstsOf = (pid: number, seen: ReadonlySet<number>): number[] =>
    (blockersOf.get(pid) ?? []).flatMap(({ blocker }) =>
      waiting.has(blocker) && !seen.has(blocker) ? firstsOf(blocker, new Set([...seen, blocker])) : [blocker],
    )
  const found = new Map<number, Row[]>()
  for (const [pid, own] of blockersOf)
    for (const first of new Set(firstsOf(pid, new Set([pid])))) {
      const [row] = own
      if (row) found.set(first, [...(found.get(first) ?? []), row])
    }
  return [...found]
    .map(([pid, waiters]) => {
      const own = rows.filter(({ blocker }) => blocker === pid)
      const [said] = own
      return {
        pid,
        user: said?.user ?? null,
        application: said?.application ?? null,
        relations: [...new Set(waiters.flatMap(({ relation }) => relation ?? []))].sort(),
        mode: own.find(({ mode }) => mode !== null)?.mode ?? null,
        state: said?.state ?? null,
        heldMs: said?.heldMs ?? null,
        waiting: waiters.length,
        waitMs: Math.max(...waiters.map(({ waitMs }) => waitMs)),
      }
    })
    .sort((a, b) => b.waitMs - a.waitMs)
}

/** How long the one has waited that waits longest, in ms; 0 if nobody waits. */
export async function longestWait(db: Db): Promise<number> {
  const { rows } = await db.query<{ waitMs: number | null }>({
    text: `select max(extract(epoch from clock_timestamp() - l.waitstart) * 1000)::float8 as "waitMs"
from pg_locks as l
join pg_stat_activity as a on a.pid = l.pid
where not l.granted and a.datname = current_database()`,
  })
  return rows[0]?.waitMs ?? 0
}
