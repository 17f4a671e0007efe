// What the verification and the export of the audit ask: the numbers of a span of time, what has none, and what was pruned.
import type { Db } from '../pool.ts'
import type { AuditRow } from './audits.ts'

/** How many rows have had no number for longer than `ms`. */
export async function countUnnumbered(db: Db, ms: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    text: `select count(*) as n
from tokenmill.audit
where seq is null and at < now() - make_interval(secs => $1 / 1000.0)`,
    values: [ms],
  })
  return rows[0]?.n ?? 0
}

/** The rows that say what was pruned, newest first; also one without a number: its mark has a MAC of its own. */
export async function listPrunes(db: Db): Promise<Pick<AuditRow, 'detail'>[]> {
  const { rows } = await db.query<Pick<AuditRow, 'detail'>>({
    text: `select detail
from tokenmill.audit
where action = 'audit.prune' and outcome = 'done'
order by audit_id desc
limit 100`,
  })
  return rows
}

/** The numbers of the first and the last row of a span of time; `last` is 0 if there is none. */
export async function spanOf(
  db: Db,
  { from, to }: { from: number; to: number },
): Promise<{ first: number; last: number }> {
  const { rows } = await db.query<{ first: number; last: number }>({
    text: `select coalesce(min(seq), 1) as first, coalesce(max(seq), 0) as last
from tokenmill.audit
where at >= to_timestamp($1 / 1000.0) and at < to_timestamp($2 / 1000.0)`,
    values: [from, to],
  })
  return rows[0] ?? { first: 1, last: 0 }
}
