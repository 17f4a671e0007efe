// How the proof of the audit stands: the last verdict of `audit verify` that was written here, and how far the segments got. Both are
// the installation's, so people for some entities see neither. It only reads.
import type { Db } from '../../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'

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
  /** Where the newest segment went: a URL, or if `isOutside` is false a worker's host. Null: not known. */
  place: string | null
  isOutside: boolean | null
}

export async function findChain(sight: Sight, db: Db): Promise<SeenChain | undefined> {
  const { rows } = await db.query<SeenChain>({
    name: 'seen-audit-chain',
    text: `select seq, segment, case when unsent_from is null then cut_seq else unsent_from - 1 end as "sentTo", sent_at as "sentAt",
  away_since as "awaySince", place, is_outside as "isOutside" from tokenmill.audit_chain where $1::uuid[] is null`,
    values: [entitiesOf(sight)],
  })
  return rows[0]
}

/** What `audit verify` wrote here; whoever owns the database can write such a row. */
export interface SeenVerdict {
  auditId: number
  /** ms since the epoch. */
  at: number
  actor: string
  host: string | null
  isSound: boolean
  detail: Record<string, unknown>
}

export async function findVerdict(sight: Sight, db: Db): Promise<SeenVerdict | undefined> {
  const { rows } = await db.query<SeenVerdict>({
    name: 'seen-audit-verdict',
    text: `select audit_id as "auditId", at, actor, host, outcome = 'done' as "isSound", detail from tokenmill.audit
where $1::uuid[] is null and action = 'audit.verify' order by at desc, audit_id desc limit 1`,
    values: [entitiesOf(sight)],
  })
  return rows[0]
}
