// The parts of totals: one row and one job each. A part digests the rows of some chunks of one batch; the last part of a
// total names no batch, and merges the others once they are done.
import { plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Part {
  totalId: string
  part: number
  /** Null for the part that merges the others. */
  batchNo: number | null
  /** The numbers of its chunks, `chunkTo` excluded. */
  chunkFrom: number
  chunkTo: number
}

/** A row that both sides leave out. */
export interface LeftOut {
  line: number
  reference: string | null
  reason: string
}

type PackedLeftOut = [line: number, reason: string, reference: string | null]

export async function insertAll(db: Db, parts: readonly Part[]): Promise<void> {
  await db.query({
    text: `insert into tokenmill.manifest_part (
  total_id,
  part,
  batch_no,
  chunk_from,
  chunk_to
)
select
  $1,
  v.part,
  v.batch,
  v.first,
  v.next
from unnest(
  $2::integer[],
  $3::bigint[],
  $4::integer[],
  $5::integer[]
) as v(
  part,
  batch,
  first,
  next
)`,
    values: [
      parts[0]?.totalId,
      plains(parts.map(({ part }) => part)),
      plains(parts.map(({ batchNo }) => batchNo)),
      plains(parts.map(({ chunkFrom }) => chunkFrom)),
      plains(parts.map(({ chunkTo }) => chunkTo)),
    ],
  })
}

/** A part for which a job is to be sent. */
export interface DuePart {
  totalId: string
  part: number
  entityId: string
}

/**
 * Takes parts for which a job is due: none was sent, or `leaseMs` ago one was that hasn't ended. Parts of totals for
 * which nobody has waited for `wantedMs` stay.
 */
export async function claim(
  db: Db,
  { leaseMs, wantedMs, limit }: { leaseMs: number; wantedMs: number; limit: number },
): Promise<DuePart[]> {
  const { rows } = await db.query<DuePart>({
    text: `with due as (
  select p.total_id, p.part, t.entity_id
  from tokenmill.manifest_total as t
  join tokenmill.manifest_part as p using (total_id)
  where t.ended_at is null and t.wanted_at > now() - $2 * interval '1 millisecond' and p.done_at is null
    and (p.sent_at is null or p.sent_at < now() - $1 * interval '1 millisecond')
    and (p.batch_no is not null or not exists (
      select
      from tokenmill.manifest_part as other
      where other.total_id = p.total_id and other.batch_no is not null and other.done_at is null
    ))
  order by p.total_id, p.part
  limit $3
  for update of p skip locked
)
update tokenmill.manifest_part as p
set sent_at = now(), sent = p.sent + 1
from due
where p.total_id = due.total_id and p.part = due.part
returning p.total_id as "totalId", p.part, due.entity_id as "entityId"`,
    values: [leaseMs, wantedMs, limit],
  })
  return rows
}

/** A part that isn't done. */
export async function findUndone(db: Db, totalId: string, part: number): Promise<Part | undefined> {
  const { rows } = await db.query<Part>({
    text: `select
  total_id as "totalId",
  part,
  batch_no as "batchNo",
  chunk_from as "chunkFrom",
  chunk_to as "chunkTo"
from tokenmill.manifest_part
where total_id = $1 and part = $2 and done_at is null`,
    values: [totalId, part],
  })
  return rows[0]
}

/** Marks the part as done. False if it was done before, or its total is gone. */
export async function finish(
  db: Db,
  { totalId, part }: Pick<Part, 'totalId' | 'part'>,
  leftOut: readonly LeftOut[],
): Promise<boolean> {
  const packed = leftOut.map(({ line, reason, reference }): PackedLeftOut => [line, reason, reference])
  const { count } = await db.query({
    text: `update tokenmill.manifest_part
set done_at = now(), exceptions = $3::jsonb
where total_id = $1 and part = $2 and done_at is null`,
    values: [totalId, part, packed.length === 0 ? null : JSON.stringify(packed)],
  })
  return count === 1
}

export interface PartsProgress {
  chunks: number
  chunksDone: number
  /** Whether a job was sent for a part that isn't done. */
  isSent: boolean
}

export async function progress(db: Db, totalId: string): Promise<PartsProgress> {
  const { rows } = await db.query<PartsProgress>({
    text: `select
  coalesce(sum(chunk_to - chunk_from), 0)::integer as chunks,
  coalesce(sum(chunk_to - chunk_from) filter (where done_at is not null), 0)::integer as "chunksDone",
  coalesce(bool_or(sent_at is not null) filter (where done_at is null), false) as "isSent"
from tokenmill.manifest_part
where total_id = $1`,
    values: [totalId],
  })
  const [row] = rows
  if (!row) throw new Error('broken law: an aggregate has one row')
  return row
}

/** The first part after `part` of which rows are left out, and these rows; undefined if there is no such part. */
export async function leftOutAfter(
  db: Db,
  totalId: string,
  part: number,
): Promise<{ part: number; batchNo: number; leftOut: LeftOut[] } | undefined> {
  const { rows } = await db.query<{ part: number; batchNo: number; exceptions: PackedLeftOut[] }>({
    text: `select part, batch_no as "batchNo", exceptions
from tokenmill.manifest_part
where total_id = $1 and part > $2 and exceptions is not null
order by part
limit 1`,
    values: [totalId, part],
  })
  const [row] = rows
  if (!row) return undefined
  const { part: found, batchNo, exceptions } = row
  return { part: found, batchNo, leftOut: exceptions.map(([line, reason, reference]) => ({ line, reason, reference })) }
}
