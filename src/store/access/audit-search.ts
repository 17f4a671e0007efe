// Reads audit rows for people: by filters, newest first, and by time, oldest first.
import type { Db } from '../pool.ts'
import { AUDIT_COLUMNS, type AuditOutcome, type AuditRow } from './audits.ts'

export interface AuditFilters {
  /** The whole actor, action or subject; an action may end in `*`. */
  actor: string | undefined
  action: string | undefined
  subject: string | undefined
  outcome: AuditOutcome | undefined
  /** From (inclusive) and to (exclusive), ms since the epoch. */
  since: number | undefined
  until: number | undefined
}

/** `seq`: null while the row has no number. */
export type FoundRow = AuditRow & { seq: number | null }

/** The newest rows that match. */
export async function list(db: Db, filters: AuditFilters, limit: number): Promise<FoundRow[]> {
  const { actor, action, subject, outcome, since, until } = filters
  const { rows } = await db.query<FoundRow>({
    text: `select ${AUDIT_COLUMNS}, seq from tokenmill.audit as a
where ($1::text is null or actor = $1)
and ($2::text is null or action = $2 or ($2 like '%*' and starts_with(action, rtrim($2, '*'))))
and ($3::text is null or subject = $3) and ($4::text is null or outcome = $4)
and ($5::bigint is null or a.at >= to_timestamp($5 / 1000.0)) and ($6::bigint is null or a.at < to_timestamp($6 / 1000.0))
order by audit_id desc limit $7`,
    values: [actor, action, subject, outcome, since, until, limit].map(value => value ?? null),
  })
  return rows
}

/** How many rows have had no number for longer than `ms`. */
export async function countUnnumbered(db: Db, ms: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    text: `select count(*) as n from tokenmill.audit where seq is null and at < now() - make_interval(secs => $1 / 1000.0)`,
    values: [ms],
  })
  return rows[0]?.n ?? 0
}

/** The rows that say what was pruned, newest first; also one without a number: its mark has a MAC of its own. */
export async function listPrunes(db: Db): Promise<Pick<AuditRow, 'detail'>[]> {
  const { rows } = await db.query<Pick<AuditRow, 'detail'>>({
    text: `select detail from tokenmill.audit where action = 'audit.prune' and outcome = 'done' order by audit_id desc limit 100`,
  })
  return rows
}

/** The numbers of the first and the last row of a span of time; `last` is 0 if there is none. */
export async function spanOf(
  db: Db,
  { from, to }: { from: number; to: number },
): Promise<{ first: number; last: number }> {
  const { rows } = await db.query<{ first: number; last: number }>({
    text: `select coalesce(min(seq), 1) as first, coalesce(max(seq), 0) as last from tokenmill.audit
where at >= to_timestamp($1 / 1000.0) and at < to_timestamp($2 / 1000.0)`,
    values: [from, to],
  })
  return rows[0] ?? { first: 1, last: 0 }
}
