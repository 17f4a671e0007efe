// The entities whose capture keys workers replace. An operator switches this on, because only the operator can find out
// whether a merchant's pages hold a key in their code.
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Turning {
  entityId: string
  /** A key is replaced when it is this old. */
  everyDays: number
  /** Since when the use of the entity's keys is watched without a gap, ms since the epoch. */
  since: number
}

export async function list(db: Db): Promise<Turning[]> {
  const { rows } = await db.query<Turning>({
    text: `select entity_id as "entityId", every_days as "everyDays", since
from tokenmill.capture_turning
order by entity_id`,
  })
  return rows
}

export async function switchOn(db: Db, { entityId, everyDays }: Omit<Turning, 'since'>): Promise<void> {
  await db.query({
    text: `insert into tokenmill.capture_turning (entity_id, every_days)
values ($1, $2)
on conflict (entity_id) do update
set every_days = excluded.every_days`,
    values: [entityId, everyDays],
  })
}

/** The use of these entities' keys is watched only from `at` on, ms since the epoch. */
export async function restart(db: Db, entityIds: readonly string[], at: number): Promise<void> {
  await db.query({
    text: `update tokenmill.capture_turning
set since = $2
where entity_id = any($1::uuid[])`,
    values: [plains(entityIds), new Date(at)],
  })
}

/** False if it was off. */
export async function switchOff(db: Db, entityId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `delete from tokenmill.capture_turning
where entity_id = $1`,
    values: [entityId],
  })
  return count === 1
}
