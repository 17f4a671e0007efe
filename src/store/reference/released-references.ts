// Source references that were released: a keyed hash of each owner's ids, when and why. The ids themselves are erased.
import { byteas, listOf, plains } from '../columns.ts'
import type { Db } from '../pool.ts'

export type ReleaseCause = 'RELEASED' | 'TOKEN_DELETED'

export interface ReleasedReference {
  ownerHash: Buffer
  /** The same without the customer's id. */
  cardHash: Buffer
  cause: ReleaseCause
  /** The receipt of the job that released the reference. */
  receiptId: string
  /** The number of the reference that was released. */
  referenceNo: number
  /** ms since the epoch. */
  releasedAt: number
}

export async function insertAll(db: Db, released: readonly ReleasedReference[]): Promise<void> {
  if (released.length === 0) return
  const sorted = released.toSorted((a, b) => Buffer.compare(a.ownerHash, b.ownerHash))
  await db.query({
    name: 'released-references-insert',
    text: `insert into tokenmill.released_reference (owner_hash, card_hash, released_at, cause, receipt_id, reference_no)
select v.hash, v.card, v.at, v.cause, v.receipt, v.no
from unnest($1::bytea[], $2::bytea[], $3::timestamptz[], $4::text[], $5::uuid[], $6::bigint[])
  as v(hash, card, at, cause, receipt, no)
on conflict do nothing`,
    values: [
      byteas(sorted.map(({ ownerHash }) => ownerHash)),
      byteas(sorted.map(({ cardHash }) => cardHash)),
      plains(sorted.map(({ releasedAt }) => `"${new Date(releasedAt).toISOString()}"`)),
      plains(sorted.map(({ cause }) => cause)),
      plains(sorted.map(({ receiptId }) => receiptId)),
      plains(sorted.map(({ referenceNo }) => referenceNo)),
    ],
  })
}

export interface Released {
  cause: ReleaseCause
  /** ms since the epoch. */
  releasedAt: number
}

/** When and why each owner was released last, by hash in hex. */
export function find(db: Db, ownerHashes: readonly Buffer[]): Promise<Map<string, Released>> {
  return findLast(db, 'owner_hash', ownerHashes)
}

/** When and why a card of that hash was released last, whoever its customer was. */
export function findByCards(db: Db, cardHashes: readonly Buffer[]): Promise<Map<string, Released>> {
  return findLast(db, 'card_hash', cardHashes)
}

async function findLast(
  db: Db,
  by: 'owner_hash' | 'card_hash',
  hashes: readonly Buffer[],
): Promise<Map<string, Released>> {
  if (hashes.length === 0) return new Map()
  const { rows } = await db.query<{ hash: Buffer; cause: ReleaseCause; released_at: number }>({
    name: `released-references-by-${by}`,
    text: `select found.* from unnest(${listOf(1, 'bytea')}) as wanted(hash) cross join lateral (
  select ${by} as hash, cause, released_at from tokenmill.released_reference
  where ${by} = wanted.hash order by released_at desc limit 1) as found`,
    values: [byteas(hashes)],
  })
  return new Map(rows.map(row => [row.hash.toString('hex'), { cause: row.cause, releasedAt: row.released_at }]))
}
