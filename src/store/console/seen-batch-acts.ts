// What people did to a batch, and their notes on it, from the audit. People for some entities are told the names of people of these
// entities alone: of others they read what was done and why, and not who. It only reads.
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from './sight.ts'

export interface SeenBatchAct {
  /** ms since the epoch. */
  at: number
  action: 'batch.pause' | 'batch.resume' | 'batch.cancel' | 'batch.note'
  reason: string | null
  /** A person's name, the actor of the audit, or in general words. */
  who: string
  /** Null: it was no person, or none whose name is told. */
  personId: string | null
}

/** The newest first, up to `limit`; none for a batch of somebody else, as for one that isn't there. */
export async function list(
  sight: Sight,
  db: Db,
  { batchNo, limit }: { batchNo: number; limit: number },
): Promise<SeenBatchAct[]> {
  const { rows } = await db.query<SeenBatchAct>({
    text: `select a.at, a.action, a.reason, coalesce(p.name, case when $1::uuid[] is null then a.actor else 'An operator' end) as who,
  p.person_id as "personId"
from tokenmill.batch as b
cross join lateral (
  select audit_id, at, actor, action, reason from tokenmill.batch_act
  where batch_id = b.batch_id and client_id = b.client_id order by audit_id desc limit $3
) as a
left join tokenmill.person as p on 'person:' || p.person_id = a.actor and ($1::uuid[] is null or p.entities <@ $1)
where b.batch_no = $2 and ($1::uuid[] is null or b.entity_id = any($1)) order by a.audit_id desc`,
    values: [entitiesOf(sight), batchNo, limit],
  })
  return rows
}
