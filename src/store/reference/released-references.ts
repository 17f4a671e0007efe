// Source references that were released: a keyed hash of each owner's ids, when and why. The ids themselves are erased.
import { byteas, plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export type ReleaseCause = 'RELEASED' | 'TOKEN_DELETED'

export interface ReleasedReference {
  ownerHash: Buffer
  cause: ReleaseCause
  /** The receipt of the job that released the reference. */
  receiptId: string
  /** ms since the epoch. */
  releasedAt: number
}

export async function insertAll(db: Db, released: readonly ReleasedReference[]): Promise<void> {
  if (released.length === 0) return
  const sorted = released.toSorted((a, b) => Buffer.compare(a.ownerHash, b.ownerHash))
  await db.query({
    name: 'released-references-insert',
    text: `insert into tokenmill.released_reference (owner_hash, released_at, cause, receipt_id)
select v.hash, v.at, v.cause, v.receipt
from unnest($1::bytea[], $2::timestamptz[], $3::text[], $4::uuid[]) as v(hash, at, cause, receipt)
on conflict do nothing`,
    values: [
      byteas(sorted.map(({ ownerHash }) => ownerHash)),
      plains(sorted.map(({ releasedAt }) => `"${new Date(releasedAt).toISOString()}"`)),
      plains(sorted.map(({ cause }) => cause)),
      plains(sorted.map(({ receiptId }) => receiptId)),
    ],
  })
}

/** When and why each reference was last released, by hash in hex. */
export async function find(
  db: Db,
  hashes: readonly Buffer[],
): Promise<Map<string, { cause: ReleaseCause; releasedAt: number }>> {
  if (hashes.length === 0) return new Map()
  const { rows } = await db.query<{ owner_hash: Buffer; cause: ReleaseCause; released_at: number }>({
    name: 'released-references-find',
    text: `select found.* from unnest($1::bytea[]) as wanted(hash) cross join lateral (
  select owner_hash, cause, released_at from tokenmill.released_reference
  where owner_hash = wanted.hash order by released_at desc limit 1) as found`,
    values: [byteas(hashes)],
  })
  return new Map(rows.map(row => [row.owner_hash.toString('hex'), { cause: row.cause, releasedAt: row.released_at }]))
}
