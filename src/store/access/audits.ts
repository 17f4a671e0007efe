// Audit rows: one per act of an administrator or of tokenmill itself, and one per access to card data for a person. The
// row of an act that is done is written in the act's transaction. Token work isn't recorded here; it has receipts.
// audit-chain.ts holds the head of their chain.
import { hostname } from 'node:os'
import type { Db } from '../pool.ts'
import * as auditChain from './audit-chain.ts'

export const AUDIT_OUTCOMES = ['done', 'refused', 'failed'] as const
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

export interface Audit {
  /** A user of the machine (`cli:name`), a client id, or a role of tokenmill. */
  actor: string
  /** The name of the act: `client.add`, `capture-key.retire`, … */
  action: string
  /** The id or name of the object of the act. */
  subject: string
  /** Further facts; never a secret. */
  detail?: Record<string, unknown>
  /** Whose object it is. It stands in `detail`, too, which the row's hash covers. */
  entityId?: string | null | undefined
  /** Default: `done`. */
  outcome?: AuditOutcome
  /**
   * tokenmill acts without an operator, for example to start: such an act isn't refused while the outside place is
   * away.
   */
  isAutomatic?: boolean | undefined
}

/** For a statement that does an act and also records it: append a `select` of these three columns. */
export const RECORD = 'insert into tokenmill.audit (actor, action, subject)'

/**
 * Writes a row; returns its id. Throws `ConfigError` for an operator's act on keys or an export that is done while the
 * outside place of the audit has been away for too long.
 */
export async function insert(db: Db, { outcome = 'done', isAutomatic = false, ...audit }: Audit): Promise<number> {
  if (outcome === 'done' && !isAutomatic) await auditChain.assertNearby(db, audit.action)
  const { entityId = null } = audit
  const detail = { ...audit.detail, ...(entityId === null ? {} : { entity_id: entityId }) }
  const { rows } = await db.query<Pick<AuditRow, 'auditId'>>({
    text: `insert into tokenmill.audit (
  actor,
  action,
  subject,
  detail,
  host,
  outcome,
  entity_id
)
values (
  $1,
  $2,
  $3,
  $4::jsonb,
  $5,
  $6,
  $7
)
returning audit_id as "auditId"`,
    values: [audit.actor, audit.action, audit.subject, JSON.stringify(detail), hostname(), outcome, entityId],
  })
  return rows[0]?.auditId ?? 0
}

/** Whether a row of this action and subject, with these members in its detail, was written since `since` (ms since the epoch). */
export async function wasWritten(
  db: Db,
  { action, subject, detail = {} }: Pick<Audit, 'action' | 'subject' | 'detail'>,
  since: number,
): Promise<boolean> {
  const { count } = await db.query({
    // As the index has it (src/store/large-indexes.ts).
    text: `select
  from tokenmill.audit
  where left(subject, 200) = left($2, 200) and at >= $3
  and subject = $2 and action = $1 and detail @> $4::jsonb
  limit 1`,
    values: [action, subject, new Date(since), JSON.stringify(detail)],
  })
  return count > 0
}

/** The subjects of all rows of an act with the outcome `done`. */
export async function listSubjects(db: Db, action: string): Promise<string[]> {
  const { rows } = await db.query<{ subject: string }>({
    text: `select distinct subject
from tokenmill.audit
where action = $1 and outcome = 'done'`,
    values: [action],
  })
  return rows.map(({ subject }) => subject)
}

/** Writes a row for each subject, which are all different; returns the id of each one's row. As `insert` else. */
export async function insertAll(
  db: Db,
  {
    actor,
    action,
    rows: wanted,
  }: Pick<Audit, 'actor' | 'action'> & { rows: readonly Pick<Audit, 'subject' | 'detail'>[] },
): Promise<ReadonlyMap<string, number>> {
  await auditChain.assertNearby(db, action)
  const { rows } = await db.query<Pick<AuditRow, 'auditId' | 'subject'>>({
    text: `insert into tokenmill.audit (
  actor,
  action,
  subject,
  detail,
  host,
  outcome
)
select
  $1,
  $2,
  v.subject,
  v.detail,
  $5,
  'done'
from unnest($3::text[], $4::jsonb[]) with ordinality as v(subject, detail, position)
order by v.position
returning audit_id as "auditId", subject`,
    values: [
      actor,
      action,
      wanted.map(({ subject }) => subject),
      wanted.map(({ detail = {} }) => JSON.stringify(detail)),
      hostname(),
    ],
  })
  return new Map(rows.map(row => [row.subject, row.auditId]))
}

/** A row as its hash covers it. */
export interface AuditRow {
  auditId: number
  /** RFC 3339 in UTC with microseconds: milliseconds would leave a part of the time out of the hash. */
  at: string
  actor: string
  action: string
  subject: string
  detail: Record<string, unknown>
  /** Null in a row that another program wrote. */
  host: string | null
  outcome: AuditOutcome
}

export interface Sequenced {
  seq: number
  hash: Buffer
  mac: Buffer
  /** The version of the data key `audit` that made the MAC. */
  keyVersion: number
}

export type ChainedRow = AuditRow & Sequenced

export const AUDIT_COLUMNS = `audit_id as "auditId", to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
actor, action, subject, detail, host, outcome`
const CHAINED = `${AUDIT_COLUMNS}, seq, hash, mac, key_version as "keyVersion"`

/** Rows without a number, oldest first: also those that were committed late, behind rows with a higher id. */
export async function listUnnumbered(db: Db, limit: number): Promise<AuditRow[]> {
  const { rows } = await db.query<AuditRow>({
    name: 'audit-unnumbered',
    text: `select ${AUDIT_COLUMNS}
from tokenmill.audit
where seq is null
order by audit_id
limit $1`,
    values: [limit],
  })
  return rows
}

/**
 * Gives rows their numbers; returns how many had none. A worker's user can write numbered rows only by the function
 * `number_audit`.
 */
export async function number(db: Db, rows: readonly (Pick<AuditRow, 'auditId'> & Sequenced)[]): Promise<number> {
  const { rows: found } = await db.query<{ count: number }>({
    name: 'audit-number',
    text: 'select tokenmill.number_audit($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::smallint[]) as count',
    values: [
      rows.map(row => row.auditId),
      rows.map(row => row.seq),
      rows.map(row => row.hash),
      rows.map(row => row.mac),
      rows.map(row => row.keyVersion),
    ],
  })
  return found[0]?.count ?? 0
}

/** The reason that was given with the first such act; undefined if none was. */
export async function findReason(db: Db, action: string, subject: string): Promise<string | undefined> {
  const { rows } = await db.query<{ reason: string | null }>({
    text: `select detail->>'reason' as reason
from tokenmill.audit
where action = $1 and subject = $2
order by audit_id
limit 1`,
    values: [action, subject],
  })
  return rows[0]?.reason ?? undefined
}

/** The ids of up to ten other rows of the same actor, act and subject whose proof has the same nonce. */
export async function listOfProof(
  db: Db,
  { auditId, actor, action, subject }: Pick<AuditRow, 'auditId' | 'actor' | 'action' | 'subject'>,
  nonce: string,
): Promise<number[]> {
  const { rows } = await db.query<{ auditId: number }>({
    // `left` is that of an index (src/store/large-indexes.ts).
    text: `select audit_id as "auditId"
from tokenmill.audit
where left(subject, 200) = left($2, 200) and subject = $2
and actor = $3 and action = $4 and audit_id <> $1 and strpos(detail->>'proof', $5) > 0
order by at, audit_id
limit 10`,
    values: [auditId, subject, actor, action, `"nonce":"${nonce}"`],
  })
  return rows.map(row => row.auditId)
}

/** The number of a row; undefined while it has none. */
export async function findNumber(db: Db, auditId: number): Promise<number | undefined> {
  const { rows } = await db.query<{ seq: number | null }>({
    text: `select seq
from tokenmill.audit
where audit_id = $1`,
    values: [auditId],
  })
  return rows[0]?.seq ?? undefined
}

/** Rows with numbers above `after` and up to `to`, in their order. */
export async function listChained(
  db: Db,
  { after, to, limit }: { after: number; to: number | null; limit: number },
): Promise<ChainedRow[]> {
  const { rows } = await db.query<ChainedRow>({
    text: `select ${CHAINED}
from tokenmill.audit
where seq > $1 and ($2::bigint is null or seq <= $2)
order by seq
limit $3`,
    values: [after, to, limit],
  })
  return rows
}

/** Deletes rows up to the number `to`, for a worker's user only those that are older than a year; returns how many. */
export async function prune(db: Db, to: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>({
    text: 'select tokenmill.prune_audit($1) as count',
    values: [to],
  })
  return rows[0]?.count ?? 0
}

/** The highest number up to `to` of the rows that are older than `before`, ms since the epoch; with its hash. */
export async function findPrunable(
  db: Db,
  { to, before }: { to: number; before: number },
): Promise<{ seq: number; hash: Buffer } | undefined> {
  const { rows } = await db.query<{ seq: number; hash: Buffer }>({
    text: `select seq, hash
from tokenmill.audit
where seq <= $1
and seq < coalesce((select min(seq) from tokenmill.audit where at >= to_timestamp($2 / 1000.0)), $1 + 1)
order by seq desc
limit 1`,
    values: [to, before],
  })
  return rows[0]
}
