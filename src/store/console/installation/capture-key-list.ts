// The list of capture keys, newest first, for people who see the whole installation. No public half is shown, because the console
// couldn't check whose it is. It only reads.
import type { CaptureKeyInfo } from '../../access/capture-keys.ts'
import type { Db } from '../../pool.ts'
import { RETENTION } from '../../retention.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

/** After its last permitted use a key is kept for this long, in days. */
export const KEPT_DAYS = RETENTION.captureKeyDays

export type ShownCaptureKey = Pick<
  CaptureKeyInfo,
  | 'keyId'
  | 'alias'
  | 'number'
  | 'entityId'
  | 'type'
  | 'state'
  | 'createdAt'
  | 'retiredAt'
  | 'destroyedAt'
  | 'lastUsedAt'
>

/** A page of capture keys. `after`: the last key of the page before. */
export async function list(
  sight: Sight,
  db: Db,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<ShownCaptureKey[]> {
  const behind =
    '(k.created_at, k.key_id) < (select p.created_at, p.key_id from tokenmill.capture_key as p where p.key_id = $2)'
  const { rows } = await db.query<ShownCaptureKey>({
    text: `select
  k.key_id as "keyId",
  k.alias,
  k.number,
  k.entity_id as "entityId",
  k.type,
  k.state,
  k.created_at as "createdAt",
  k.retired_at as "retiredAt",
  k.destroyed_at as "destroyedAt",
  k.last_used_at as "lastUsedAt"
from tokenmill.capture_key as k
where $1::uuid[] is null and ${after === undefined ? '$2::uuid is null' : behind}
order by k.created_at desc, k.key_id desc
limit $3`,
    values: [entitiesOf(sight), after ?? null, limit],
  })
  return rows
}
