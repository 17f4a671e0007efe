// Totals of migrations that a command waits for. Each has one row, which stays for some time after the total has ended,
// so that every waiting command can read it. Its parts are jobs (total-parts.ts).
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Total {
  totalId: string
  migration: string
  /** In the order that was asked for. */
  batchNos: readonly number[]
  /** The entity in whose name the jobs are sent. */
  entityId: string
  askedBy: string
  /** Why there is no total; null unless it has ended so. */
  refused: string | null
  /** The result as JSON; null unless it has ended so. */
  result: unknown
}

const COLUMNS = `
  total_id as "totalId",
  migration,
  to_json(batch_nos) as "batchNos",
  entity_id as "entityId",
  asked_by as "askedBy",
  refused,
  result`

export type NewTotal = Pick<Total, 'totalId' | 'migration' | 'batchNos' | 'entityId' | 'askedBy'>

/** False if the same is being computed already. */
export async function insert(db: Db, { totalId, migration, batchNos, entityId, askedBy }: NewTotal): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.manifest_total (
  total_id,
  migration,
  batch_nos,
  entity_id,
  asked_by
)
values (
  $1,
  $2,
  $3,
  $4,
  $5
)
on conflict (migration, batch_nos)
where ended_at is null do nothing`,
    values: [totalId, migration, plains(batchNos), entityId, askedBy],
  })
  return count === 1
}

export async function findOpen(
  db: Db,
  { migration, batchNos }: Pick<Total, 'migration' | 'batchNos'>,
): Promise<string | undefined> {
  const { rows } = await db.query<Pick<Total, 'totalId'>>({
    text: `select total_id as "totalId"
from tokenmill.manifest_total
where migration = $1 and batch_nos = $2::bigint[] and ended_at is null`,
    values: [migration, plains(batchNos)],
  })
  return rows[0]?.totalId
}

export async function find(db: Db, totalId: string): Promise<Total | undefined> {
  const { rows } = await db.query<Total>({
    text: `select ${COLUMNS}
from tokenmill.manifest_total
where total_id = $1`,
    values: [totalId],
  })
  return rows[0]
}

/** Notes that somebody still waits for the total, and reads it. */
export async function want(db: Db, totalId: string): Promise<Total | undefined> {
  const { rows } = await db.query<Total>({
    text: `update tokenmill.manifest_total
set wanted_at = now()
where total_id = $1
returning ${COLUMNS}`,
    values: [totalId],
  })
  return rows[0]
}

/** Ends it with its result. False if it has ended before, or was removed. */
export async function finish(db: Db, totalId: string, result: unknown): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.manifest_total
set result = $2::jsonb, ended_at = now()
where total_id = $1 and ended_at is null`,
    values: [totalId, JSON.stringify(result)],
  })
  return count === 1
}

/** Ends the open totals of a migration without a result; `totalId`: only this one. Returns their ids. */
export async function refuse(
  db: Db,
  reason: string,
  { migration, totalId }: { migration: string; totalId?: string | undefined },
): Promise<string[]> {
  const { rows } = await db.query<Pick<Total, 'totalId'>>({
    text: `update tokenmill.manifest_total
set refused = $1, ended_at = now()
where migration = $2 and ended_at is null and ($3::uuid is null or total_id = $3)
returning total_id as "totalId"`,
    values: [reason, migration, totalId ?? null],
  })
  return rows.map(({ totalId }) => totalId)
}

/** Removes totals for which no command has waited since `before` (ms since the epoch). Returns how many. */
export async function removeUnwanted(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.manifest_total
where wanted_at < $1`,
    values: [new Date(before)],
  })
  return count
}
