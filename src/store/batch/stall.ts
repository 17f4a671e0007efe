// What the store says about a batch that is stalled: whether workers run, and whether its client's answers wait. The latter is
// shown to who sees everything of that client: the client may act for other entities, too. It only reads.
import { BEAT } from '../access/beat.ts'
import { HELD_BACK_MIN, IS_ANSWER } from '../job/outbox.ts'
import type { Db } from '../pool.ts'
import { entitiesOf, type Sight } from '../sight.ts'
import { queueOf, type StalledBatch, type StoredStallFacts } from './why-stalled.ts'

/** A worker whose heartbeats are late because its host is overloaded counts, too, in ms. */
const LOADED_MS = 300_000

/** Of a client that acts for entities of the person alone. */
const IS_WHOLE = '($1::uuid[] is null or (not c.system and cardinality(c.entities) > 0 and c.entities <@ $1))'

/** No more answers are counted: these are enough to hold a batch back. */
export async function findStallFacts(sight: Sight, db: Db, batch: StalledBatch): Promise<StoredStallFacts> {
  const { rows } = await db.query<{
    isRevoked: boolean
    workers: number
    unread: number | null
    loaded: { host: string; load: number } | null
  }>({
    name: 'seen-stall-facts',
    text: `select
  c.revoked_at is not null as "isRevoked",
  (
    select count(*)
    from tokenmill.process
    where kinds @> array[$4] and ended_at is null and seen_at >= now() - interval '${BEAT.deadMs} ms'
  ) as workers,
  case when ${IS_WHOLE} then (
    select count(*)
    from (
      select
      from tokenmill.outbox
      where state = 'NEW' and client_id = $2 and ${IS_ANSWER}
      limit ${HELD_BACK_MIN}
    ) as waiting
  ) end as unread,
  case when $1::uuid[] is null then (
    select json_build_object('host', host, 'load', load)
    from tokenmill.process
    where load is not null and ended_at is null and seen_at >= now() - interval '${LOADED_MS} ms'
    order by load desc
    limit 1
  ) end as loaded
from tokenmill.client as c
where c.client_id = $2 and exists (
  select
  from tokenmill.batch as b
  where b.client_id = $2 and b.batch_id = $3 and ($1::uuid[] is null or b.entity_id = any($1))
)`,
    values: [entitiesOf(sight), batch.clientId, batch.batchId, queueOf(batch)],
  })
  const [row] = rows
  const { isRevoked = false, workers = 0, unread, loaded } = row ?? {}
  return { isRevoked, workers, unread: unread ?? 'unseen', loaded: loaded ?? 'unseen' }
}
