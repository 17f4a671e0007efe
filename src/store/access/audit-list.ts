// The list of the audit, newest first, for pages and commands. A page looks at a bounded number of rows by one index and then
// filters them, so it takes the same time whatever is asked; a command looks at all. It only reads.
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'
import { AUDIT_COLUMNS, type AuditOutcome, type AuditRow } from './audits.ts'

export interface AuditFilter {
  /** As a row holds it: `person:ID`, `client:ID`, `cli:ACCOUNT`. */
  actor?: string | undefined
  /** The whole action, or its begin and `*`. */
  action?: string | undefined
  outcome?: AuditOutcome | undefined
  /** From this time on, and before that one; ms since the epoch. */
  since?: number | undefined
  until?: number | undefined
  /** The whole subject. */
  subject?: string | undefined
  /** The id of a row: only rows about its subject. */
  like?: number | undefined
}

interface FoundRow {
  auditId: number
}

/** What the list selects of each row `l`: commands show whole rows, and a page what its person may see. */
export interface AuditShape<Shown> {
  columns: string
  /** Whether whoever asks may know who acted; `$1` are the entities that are seen. \`a\`: what has the columns of a row. */
  knows: (a: string) => string
  /** Only for its type. */
  shown?: Shown
}

/** `seq`: null while the row has no number. */
export type WholeRow = AuditRow & { seq: number | null }

export const WHOLE_AUDIT: AuditShape<WholeRow> = { columns: `${AUDIT_COLUMNS}, seq`, knows: () => 'true' }

/** How many rows of its index a page looks at; for people for some entities so many of each. */
const LOOKED = { all: 5_000, entities: 1_000 } as const
const seen = (a: string) => `($1::uuid[] is null or ${a}.entity_id = any($1))`

// $1 entities, $2 actor, $3 action, $4 outcome, $5 since, $6 until, $7 the last row of the page before, $8 a row of the subject,
// $9 how many are looked at, $10 limit, $11 subject. Each is named in every statement, so that PostgreSQL knows its type.
const SUBJECT = `(select s.subject from tokenmill.audit as s where s.audit_id = $8 and ${seen('s')})`
const ABOUT = `left(a.subject, 200) = (select left(s.subject, 200) from tokenmill.audit as s where s.audit_id = $8 and ${seen('s')})
  and a.subject = ${SUBJECT}`
const RANGE = `($5::timestamptz is null or a.at >= $5) and ($6::timestamptz is null or a.at < $6)
  and ($7::bigint is null or (a.at, a.audit_id) < ((select p.at from tokenmill.audit as p where p.audit_id = $7 and ${seen('p')}), $7))`
const NEWEST = 'order by a.at desc, a.audit_id desc limit $9'
const wanted = (
  knows: (a: string) => string,
) => `($2::text is null or (l.actor = $2 and ${knows('l')})) and ($3::text is null or l.action = $3
  or (right($3, 1) = '*' and starts_with(l.action, rtrim($3, '*'))))
  and ($4::text is null or l.outcome = $4) and ($8::bigint is null or l.subject = ${SUBJECT})
  and ($11::text is null or l.subject = $11)`

/** The rows that are looked at: of the filter that has the fewest, by its index. */
function walk(sight: Sight, { like, subject, outcome, actor, action }: AuditFilter): string {
  const by = (holds: string) => `select
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
where ${holds} and ${RANGE} ${NEWEST}`
  if (sight.sees === 'entities')
    return `select a.*
from (select distinct unnest($1::uuid[]) as id) as own
cross join lateral (${by('a.entity_id = own.id')}) as a
${NEWEST}`
  if (like !== undefined) return by(ABOUT)
  if (subject !== undefined) return by('left(a.subject, 200) = left($11, 200) and a.subject = $11')
  if (outcome !== undefined && outcome !== 'done') return by(`a.outcome = $4 and a.outcome <> 'done'`)
  if (actor !== undefined) return by('a.actor = $2')
  return by(action === undefined || action.endsWith('*') ? 'true' : 'a.action = $3')
}

export interface AuditPage<Shown> {
  found: Shown[]
  /** The row behind which the next page begins; undefined: there is none. */
  next: number | undefined
  /** Only so far back was looked at, ms since the epoch; undefined: the page is full, or these are the last. */
  lookedTo: number | undefined
}

// Ordered within, too: where all rows are looked at, PostgreSQL leaves `nth` out, and would then sort them all.
/** A page of rows behind the row `after`. `looked`: how many rows of the index are looked at; null: all. */
export async function list<Shown extends FoundRow>(
  sight: Sight,
  db: Db,
  asked: AuditFilter & { after?: number | undefined; limit: number; looked?: number | null },
  { columns, knows }: AuditShape<Shown>,
): Promise<AuditPage<Shown>> {
  const { actor, action, outcome, since, until, after, like, limit, subject } = asked
  const { looked = LOOKED[sight.sees] } = asked
  const at = (ms: number | undefined) => (ms === undefined ? null : new Date(ms))
  const { rows } = await db.query<Shown & { isWanted: boolean; isLast: boolean; lookedTo: number }>({
    text: `select
  ${columns},
  l."isWanted",
  coalesce(l.nth = $9, false) as "isLast",
  l.at as "lookedTo"
from (
  select l.*, (${wanted(knows)}) as "isWanted", row_number() over (order by l.at desc, l.audit_id desc) as nth
  from (${walk(sight, asked)}) as l
  order by l.at desc, l.audit_id desc
) as l
where l."isWanted" or l.nth = $9
order by l.at desc, l.audit_id desc
limit $10`,
    values: [
      ...[entitiesOf(sight), actor, action, outcome, at(since), at(until), after, like, looked, limit + 1, subject].map(
        value => value ?? null,
      ),
    ],
  })
  const found = rows.filter(row => row.isWanted)
  const page = found.slice(0, limit)
  if (found.length > limit) return { found: page, next: page.at(-1)?.auditId, lookedTo: undefined }
  const end = rows.find(row => row.isLast)
  return { found: page, next: end?.auditId, lookedTo: end?.lookedTo }
}
