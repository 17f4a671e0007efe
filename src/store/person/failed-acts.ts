// What people's acts are to do to copies in the failed set, one row for each copy. A worker writes them in the transaction that
// checks the act; workers then do them, and say how each ended.
import type { FailedActName } from '../../job/system/failed-act.ts'
import type { Db } from '../pool.ts'

export interface NewFailedAct {
  copyId: string
  auditId: number | null
  outcome: string | null
}

/** A copy that is to be retried or discarded now. */
export interface DueFailedAct {
  actNo: number
  action: FailedActName
  kind: string
  copyId: string
  auditId: number
  /** The person who acts, as the audit names it. */
  actor: string
  /** Which try this is, from 1; those that couldn't reach the queue aren't counted. An earlier one may have done it before it died. */
  tries: number
  /** ms since the epoch. */
  begunAt: number
}

/** A worker that began has this time; then another one begins. As a PostgreSQL interval. */
const LEASE = '30 seconds'

export async function insertAll(
  db: Db,
  { nonce, action, kind, copies }: { nonce: string; action: FailedActName; kind: string; copies: NewFailedAct[] },
): Promise<void> {
  await db.query({
    text: `insert into tokenmill.failed_act (
  nonce,
  action,
  kind,
  copy_id,
  audit_id,
  outcome
)
select
  $1,
  $2,
  $3,
  v.copy_id,
  v.audit_id,
  v.outcome
from unnest($4::text[], $5::bigint[], $6::text[]) with ordinality as v(
  copy_id,
  audit_id,
  outcome,
  position
)
order by v.position`,
    values: [
      nonce,
      action,
      kind,
      copies.map(({ copyId }) => copyId),
      copies.map(({ auditId }) => auditId),
      copies.map(({ outcome }) => outcome),
    ],
  })
}

/** The next that is due, in the order of the acts; no other worker gets it for a while. */
export async function begin(db: Db): Promise<DueFailedAct | undefined> {
  const { rows } = await db.query<DueFailedAct>({
    name: 'failed-act-begin',
    text: `with due as (
  select act_no
  from tokenmill.failed_act
  where outcome is null and due_at <= now()
  order by act_no
  limit 1
  for update skip locked
)
update tokenmill.failed_act as f
set due_at = now() + interval '${LEASE}', tries = f.tries + 1
from due
where f.act_no = due.act_no
returning
  f.act_no as "actNo",
  f.action,
  f.kind,
  f.copy_id as "copyId",
  f.audit_id as "auditId",
  f.tries,
  f.begun_at as "begunAt",
  (select actor from tokenmill.audit as a where a.audit_id = f.audit_id) as actor`,
  })
  return rows[0]
}

/** Puts it off: nothing was done in this try. */
export async function postpone(db: Db, actNo: number, ms: number): Promise<void> {
  await db.query({
    text: `update tokenmill.failed_act
set due_at = now() + make_interval(secs => $2), tries = 0
where act_no = $1`,
    values: [actNo, ms / 1000],
  })
}

/** The try that just began did nothing, because the queue didn't answer. It is due when its lease has run out. */
export async function uncount(db: Db, actNo: number): Promise<void> {
  await db.query({
    text: `update tokenmill.failed_act
set tries = greatest(tries - 1, 0)
where act_no = $1 and outcome is null`,
    values: [actNo],
  })
}

/** Whether another act was done to the same copy. */
export async function isTaken(
  db: Db,
  { actNo, kind, copyId }: Pick<DueFailedAct, 'actNo' | 'kind' | 'copyId'>,
): Promise<boolean> {
  const { rows } = await db.query({
    text: `select
from tokenmill.failed_act
where kind = $1 and copy_id = $2 and act_no <> $3 and outcome = 'done'
limit 1`,
    values: [kind, copyId, actNo],
  })
  return rows.length > 0
}

/** False if it has ended already. */
export async function end(db: Db, actNo: number, outcome: string): Promise<boolean> {
  const { count } = await db.query({
    name: 'failed-act-end',
    text: `update tokenmill.failed_act
set outcome = $2
where act_no = $1 and outcome is null`,
    values: [actNo, outcome],
  })
  return count === 1
}

/** Erases what has ended and began before this moment (ms since the epoch); returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.failed_act
where begun_at < $1 and outcome is not null`,
    values: [new Date(before)],
  })
  return count
}
