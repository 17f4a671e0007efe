// Rows of the audit as the console shows them; src/store/access/audit-list.ts has the list. People for some entities see the rows
// of these entities, and of who acted only people and clients for no other entity; the installation's rows don't exist for them.
// It only reads.
import type { AuditShape } from '../../access/audit-list.ts'
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

/** Who acted, as far as the person may know it. */
export interface SeenActor {
  /** Null: somebody whom the person doesn't see. */
  actor: string | null
  /** `person`, `client`, `cli`, `machine`, or a part of tokenmill. */
  actorKind: string
  /** Of a person or a client. */
  actorName: string | null
}

export interface SeenAuditRow extends SeenActor {
  auditId: number
  /** Its number in the chain; null: it has none yet. */
  seq: number | null
  /** ms since the epoch. */
  at: number
  /** Null for people for some entities, and in a row that another program wrote. */
  host: string | null
  action: string
  subject: string
  outcome: 'done' | 'refused' | 'failed'
  reason: string | null
  /** Why it was refused or failed. */
  why: string | null
  /** SHA-256 of what a passkey signed, as hex. */
  proofSha256: string | null
  /** Nobody proved who acted. */
  isUnproved: boolean
}

/** How many rows about one subject are looked at for one that the person sees. */
const NAMED = 5_000

const seen = (a: string) => `($1::uuid[] is null or ${a}.entity_id = any($1))`
const ID = (a: string) => `substr(${a}.actor, 8)`
/** Whether the person may know who it was. `a`: what has the columns of a row. */
export const knows = (a: string) => `($1::uuid[] is null or case split_part(${a}.actor, ':', 1)
  when 'person' then exists (select from tokenmill.person as p where p.person_id::text = ${ID(a)} and p.entities <@ $1)
  when 'client' then exists (select from tokenmill.client as c
    where c.client_id = ${ID(a)} and not c.system and cardinality(c.entities) > 0 and c.entities <@ $1)
  else false end)`

const PERSON = (a: string) => `(select p.name from tokenmill.person as p where p.person_id::text = ${ID(a)})`
const CLIENT = (a: string) => `(select c.name from tokenmill.client as c where c.client_id = ${ID(a)})`

export const nameOf = (a: string) =>
  `case split_part(${a}.actor, ':', 1) when 'person' then ${PERSON(a)} when 'client' then ${CLIENT(a)} end`

const COLUMNS = (
  a: string,
) => `${a}.audit_id as "auditId", ${a}.seq, ${a}.at, case when ${knows(a)} then ${a}.actor end as actor,
  split_part(${a}.actor, ':', 1) as "actorKind", case when ${knows(a)} then ${nameOf(a)} end as "actorName",
  case when $1::uuid[] is null then ${a}.host end as host, ${a}.action, ${a}.subject, ${a}.outcome,
  left(${a}.detail->>'reason', 600) as reason, left(${a}.detail->>'why', 600) as why, ${a}.detail->>'proof_sha256' as "proofSha256",
  coalesce((${a}.detail->'unproved') = 'true', false) as "isUnproved"`

/** As the console may read it, in the list. */
export const SEEN_AUDIT: AuditShape<SeenAuditRow> = { columns: COLUMNS('l'), knows }

export interface WholeAuditRow extends SeenAuditRow {
  /** Without the proof, and for people who don't know who acted without that person's passkey. */
  detail: Record<string, unknown>
  /** What proves who acted: how many characters of it the row holds; null: none. */
  proofLength: number | null
  /** The key or passkey that made the proof. */
  credential: string | null
  /** As hex; null: it has no number yet. It covers who acted, so people for some entities don't see it. */
  hash: string | null
  /** The batch that it is about. */
  batchNo: number | null
}

/** Undefined for a row that isn't the person's to see, as for one that isn't there. */
export async function find(sight: Sight, db: Db, auditId: number): Promise<WholeAuditRow | undefined> {
  const { rows } = await db.query<WholeAuditRow>({
    text: `select
  ${COLUMNS('a')},
  a.detail - 'proof' - 'credential' - case when $1::uuid[] is null then '' else 'operator' end as detail,
  length(a.detail->>'proof') as "proofLength",
  case when ${knows('a')} then a.detail->>'credential' end as credential,
  case when $1::uuid[] is null then encode(a.hash, 'hex') end as hash,
  (select b.batch_no from tokenmill.batch as b where b.client_id = a.detail->>'client_id' and b.batch_id = a.subject and ${seen('b')})
    as "batchNo"
from tokenmill.audit as a
where ${seen('a')} and a.audit_id = $2`,
    values: [entitiesOf(sight), auditId],
  })
  return rows[0]
}

/** The newest row about this subject, or else the row with this number. */
export async function findNamed(sight: Sight, db: Db, name: string): Promise<number | undefined> {
  const { rows } = await db.query<{ auditId: number }>({
    text: `select named.audit_id as "auditId"
from (
  (
    select a.audit_id, 0 as rank
    from (
    select a.audit_id, a.entity_id, a.at
    from tokenmill.audit as a
    where left(a.subject, 200) = left($2::text, 200) and a.subject = $2
    order by a.at desc, a.audit_id desc
    limit ${NAMED}
    ) as a
   where ${seen('a')}
    order by a.at desc, a.audit_id desc
    limit 1
  )
  union all
  (select a.audit_id, 1 from tokenmill.audit as a where a.seq = $3::bigint and ${seen('a')})
) as named
order by named.rank
limit 1`,
    values: [entitiesOf(sight), name, /^\d{1,15}$/.test(name) ? Number(name) : null],
  })
  return rows[0]?.auditId
}

/**
 * Acts on a batch and notes on it, newest first; not who took lists of its rows, whom nothing keeps from doing so often. Rows of acts
 * that were refused don't say whose batch it was, so they are left out. It reads an index that `schema upgrade` builds last.
 */
export async function listOfBatch(
  sight: Sight,
  db: Db,
  { clientId, batchId, limit }: { clientId: string; batchId: string; limit: number },
): Promise<SeenAuditRow[]> {
  const { rows } = await db.query<SeenAuditRow>({
    text: `select ${COLUMNS('l')}
  from (
  select
    a.audit_id,
    a.seq,
    a.at,
    a.actor,
    a.action,
    a.subject,
    a.outcome,
    a.host,
    a.detail
  from tokenmill.audit as a
  where left(a.subject, 200) = left($2::text, 200) and a.subject = $2 and a.action like 'batch.%' and a.outcome = 'done'
    and a.detail->>'client_id' = $3 and ${seen('a')}
  order by a.at desc, a.audit_id desc
  limit $4
) as l
  order by l.at desc, l.audit_id desc`,
    values: [entitiesOf(sight), batchId, clientId, limit],
  })
  return rows
}
