// How the proof of the audit stands: the last verdict of `audit verify` that was written here, and how far the segments got. Both are
// the installation's, so people for some entities see neither. It only reads.
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

export interface SeenChain {
  /** The number of the last row that has one. */
  seq: number
  /** How many segments were cut; 0: none. */
  segment: number
  /** The number of the last row in a segment that was sent. */
  sentTo: number
  /** ms since the epoch: when the newest segment was sent, and since when the place takes none. */
  sentAt: number
  awaySince: number | null
  /** Where the newest segment that was sent went: a URL, or if `isOutside` is false a worker's host. Null: none was sent. */
  place: string | null
  isOutside: boolean | null
}

export async function findChain(sight: Sight, db: Db): Promise<SeenChain | undefined> {
  const { rows } = await db.query<SeenChain>({
    name: 'seen-audit-chain',
    text: `select
  seq,
  segment,
  case when unsent_from is null then cut_seq else unsent_from - 1 end as "sentTo",
  sent_at as "sentAt",
  away_since as "awaySince",
  place,
  is_outside as "isOutside"
from tokenmill.audit_chain
where $1::uuid[] is null`,
    values: [entitiesOf(sight)],
  })
  return rows[0]
}

/** What `audit verify` wrote here. Whoever may write to the audit can write such a row: its owner, the gateway and the workers. */
export interface SeenVerdict {
  auditId: number
  /** ms since the epoch. */
  at: number
  actor: string
  host: string | null
  isSound: boolean
  /** It compared the rows with segments, of a place to which every host sends them. */
  isComplete: boolean
  detail: Record<string, unknown>
}

export interface SeenVerdicts {
  newest: SeenVerdict | undefined
  /** The newest one of a complete verification that found nothing. */
  proved: SeenVerdict | undefined
  /** The newest one that found something, if none has proved since that there is nothing. */
  unsound: SeenVerdict | undefined
}

const PARTS = ['newest', 'proved', 'unsound'] as const
const IS_COMPLETE = `(detail->'is_complete' = 'true' and jsonb_typeof(detail->'segments') = 'number' and detail->'segments' > '0')`
const newest = (holds: string) => `select
    audit_id as "auditId",
    at,
    actor,
    host,
    outcome = 'done' as "isSound",
    coalesce(${IS_COMPLETE}, false) as "isComplete",
    detail
  from tokenmill.audit
  where $1::uuid[] is null and action = 'audit.verify' and ${holds}
  order by at desc, audit_id desc
  limit 1`

/** A verification that wasn't sound, and that no later one has proved sound. */
const IS_UNREFUTED = `outcome <> 'done' and not exists (
    select
    from proved
    where (proved.at, proved."auditId") > (audit.at, audit.audit_id)
  )`

export async function findVerdicts(sight: Sight, db: Db): Promise<SeenVerdicts> {
  const { rows } = await db.query<SeenVerdict & { part: keyof SeenVerdicts }>({
    name: 'seen-audit-verdicts',
    text: `with newest as (
  ${newest('true')}
),
proved as (
  ${newest(`outcome = 'done' and ${IS_COMPLETE}`)}
),
unsound as (
  ${newest(IS_UNREFUTED)}
)
${PARTS.map(part => `select '${part}' as part, ${part}.* from ${part}`).join('\nunion all\n')}`,
    values: [entitiesOf(sight)],
  })
  const found = new Map(rows.map(({ part, ...verdict }) => [part, verdict]))
  return { newest: found.get('newest'), proved: found.get('proved'), unsound: found.get('unsound') }
}
